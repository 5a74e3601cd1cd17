"""What `autockpt bench frontier` prints and writes: a table for each model, and who wins."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.bench.baselines import PLAIN, TORCH
from autockpt.bench.frontier import OURS, Candidate, Frontier, Pair
from autockpt.measure import Ratio, ratio
from autockpt.render import Series
from autockpt.units import format_size

LOSS = 1.02
"""Of a baseline's time: more than this is a loss that is named."""
_HEADINGS = ("baseline", "peak", "step", "gradients", "ours: peak", "step", "gradients", "ours / baseline")


def rows(frontier: Frontier) -> list[list[str]]:
    """Every baseline with ours at its peak, then the floor. Steps are multiples of plain Inductor's."""
    met = {pair.baseline.name: pair for pair in frontier.pairs}
    shown = []
    for baseline in frontier.baselines:
        pair = met.get(baseline.name)
        if pair is None:
            shown.append([f"{baseline.name}: {baseline.note}", *[""] * (len(_HEADINGS) - 1)])
            continue
        shown.append([*_facts(baseline, frontier), *_against(pair, frontier)])
    floors = [mine for mine in frontier.ours if mine.budget_bytes is None]
    return shown + [[f"({floor.name})", "", "", "", *_facts(floor, frontier)[1:], ""] for floor in floors]


def _facts(candidate: Candidate, frontier: Frontier) -> list[str]:
    if candidate.peak_bytes is None:
        return [candidate.name, "did not run", "", ""]
    share = ratio(candidate.times, frontier.plain.times).middle
    wrong = " WRONG" if candidate.wrong else ""
    return [candidate.name, format_size(candidate.peak_bytes), f"{share:.2f}", candidate.gradients + wrong]


def _against(pair: Pair, frontier: Frontier) -> list[str]:
    _, peak, step, gradients = _facts(pair.ours, frontier)
    over = " OVER" if pair.ours.peak_bytes is not None and not pair.holds else ""
    return [peak + over, step, gradients, str(_ratio(pair)) if pair.ours.times else ""]


def _ratio(pair: Pair) -> Ratio:
    return ratio(pair.ours.times, pair.baseline.times)


def frontier_table(frontier: Frontier) -> Table:
    """For a terminal."""
    given = format_size(frontier.graph_input_bytes)
    shown = Table(*_HEADINGS, title=f"{frontier.target}, of every peak {given} parameters and inputs")
    for column in shown.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in rows(frontier):
        shown.add_row(*row)
    return shown


def frontier_notes(frontier: Frontier) -> list[str]:
    """Why there is no table, or why ours did not run; a baseline's reason is in its row."""
    if frontier.trouble:
        return [f"{frontier.name}: {frontier.trouble}"]
    return [f"{frontier.name}, {mine.name}: {mine.note}" for mine in frontier.ours if mine.note]


def frontier_summary(frontiers: Sequence[Frontier]) -> list[str]:
    """Over all baselines of all models, then everything that is not as it should be."""
    pairs = [(f, pair) for f in frontiers for pair in f.pairs]
    timed = [(f, pair, _ratio(pair)) for f, pair in pairs if pair.ours.times]
    held = sum(pair.holds for _, pair in pairs)
    lines = [f"ours holds the peak of {held} of {len(pairs)} baselines; models: {len({f.target for f, _ in pairs})}"]
    lines += _times("ours / baseline, time at the same peak", timed)
    lines += _times("of these, ours / plain Inductor", [one for one in timed if one[1].baseline.series == PLAIN])
    lines += _lowest(frontiers)
    lines += [f"{f.name}: {_failure(pair)}" for f, pair in pairs if not pair.holds]
    lines += [
        f"{f.name}: ours takes {found} of the time of {pair.baseline.name} at {format_size(pair.baseline.peak_bytes or 0)}"
        for f, pair, found in timed
        if found.middle > LOSS
    ]
    return lines + [f"{f.name}: gradients of {c.name} are wrong by {c.gradients}" for f, c in _wrong(frontiers)]


def _times(what: str, timed: Sequence[tuple[Frontier, Pair, Ratio]]) -> list[str]:
    if not timed:
        return []
    middle = statistics.median(found.middle for _, _, found in timed)
    frontier, pair, worst = max(timed, key=lambda one: one[2].middle)
    lost = sum(found.middle > LOSS for _, _, found in timed)
    who = f"{frontier.name} against {pair.baseline.name}"
    return [f"{what}: median {middle:.2f}; worst {worst}, {who}; above {LOSS:g}: {lost} of {len(timed)}"]


def _lowest(frontiers: Sequence[Frontier]) -> list[str]:
    """Ours over torch's, with parameters and inputs and without."""
    found = [(f.lowest(OURS), f.lowest(TORCH), f.graph_input_bytes) for f in frontiers]
    both = [(ours, theirs, given) for ours, theirs, given in found if ours is not None and theirs is not None]
    if not both:
        return []
    total = _geometric_mean([ours / theirs for ours, theirs, _ in both])
    dynamic = _geometric_mean([(ours - given) / (theirs - given) for ours, theirs, given in both])
    return [
        f"lowest peak, ours / torch's budget: {total:.2f} with parameters and inputs, {dynamic:.2f} without "
        f"(geometric mean; models: {len(both)})"
    ]


def _geometric_mean(numbers: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(number) for number in numbers))


def _failure(pair: Pair) -> str:
    wanted = f"{pair.baseline.name} reaches {format_size(pair.baseline.peak_bytes or 0)}"
    if pair.ours.peak_bytes is None:
        return f"{wanted}, ours does not run there"
    return f"{wanted}, ours measured OVER it at {format_size(pair.ours.peak_bytes)}"


def _wrong(frontiers: Sequence[Frontier]) -> list[tuple[Frontier, Candidate]]:
    return [(f, candidate) for f in frontiers for candidate in f.candidates if candidate.wrong]


def frontier_series(frontier: Frontier) -> list[Series]:
    """Peak in MiB against step time, a series for each kind of candidate."""
    names = dict.fromkeys(candidate.series for candidate in frontier.candidates)
    return [Series(name, _points(frontier, name), line=True) for name in names]


def _points(frontier: Frontier, name: str) -> list[tuple[float, float]]:
    ran = [one for one in frontier.candidates if one.series == name and one.times]
    return sorted(((c.peak_bytes or 0) / 2**20, ratio(c.times, frontier.plain.times).middle) for c in ran)


def frontier_markdown(what: str, frontiers: Sequence[Frontier], lines: Sequence[str]) -> str:
    """For a page: what made it, a table for each model, the summary."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    tables = [
        f"{f.name}, {format_size(f.graph_input_bytes)} of them given:\n\n{_page_table(f)}"
        for f in frontiers
        if not f.trouble
    ]
    bullets = "\n".join(f"- {line}" for line in lines)
    return "\n\n".join([f"{versions}: `autockpt bench frontier {what}`", *tables, bullets]) + "\n"


def _page_table(frontier: Frontier) -> str:
    lines = [list(_HEADINGS), ["---"] * len(_HEADINGS), *rows(frontier)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
