"""What `autockpt bench frontier` prints and writes: a table for each model, and a summary of all."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import torch
from rich.table import Table

from autockpt import __version__
from autockpt.bench.baselines import PLAIN, TORCH
from autockpt.bench.frontier import OURS, MeasuredFrontier, MeasuredRun, Pair
from autockpt.measure import Ratio, ratio
from autockpt.render import Series
from autockpt.units import format_size

_SLOWER = 1.02
"""Times of ours over a baseline's from which on the summary names the pair."""
_HEADINGS = ("baseline", "peak", "step", "gradients", "ours: peak", "step", "gradients", "ours / baseline")


def frontier_rows(frontier: MeasuredFrontier) -> list[list[str]]:
    """Every baseline with our run within its peak, then our minimum peak. Steps are multiples of plain Inductor's."""
    pairs = {pair.baseline.name: pair for pair in frontier.pairs}
    rows = []
    for baseline in frontier.baselines:
        pair = pairs.get(baseline.name)
        if pair is None:
            rows.append([f"{baseline.name}: {baseline.note}", *[""] * (len(_HEADINGS) - 1)])
            continue
        rows.append([*_cells(baseline, frontier), *_our_cells(pair, frontier)])
    at_minimum = [run for run in frontier.ours if run.budget_bytes is None]
    return rows + [[f"({run.name})", "", "", "", *_cells(run, frontier)[1:], ""] for run in at_minimum]


def _cells(run: MeasuredRun, frontier: MeasuredFrontier) -> list[str]:
    if run.peak_bytes is None:
        return [run.name, "did not run", "", ""]
    multiple = ratio(run.times, frontier.plain.times).middle
    wrong = " WRONG" if run.wrong else ""
    return [run.name, format_size(run.peak_bytes), f"{multiple:.2f}", run.gradients + wrong]


def _our_cells(pair: Pair, frontier: MeasuredFrontier) -> list[str]:
    _, peak, step, gradients = _cells(pair.ours, frontier)
    over = " OVER" if pair.ours.peak_bytes is not None and not pair.holds else ""
    return [peak + over, step, gradients, str(_ratio(pair)) if pair.ours.times else ""]


def _ratio(pair: Pair) -> Ratio:
    return ratio(pair.ours.times, pair.baseline.times)


def frontier_table(frontier: MeasuredFrontier) -> Table:
    """For a terminal."""
    inputs = format_size(frontier.graph_input_bytes)
    table = Table(*_HEADINGS, title=f"{frontier.target}; every peak includes {inputs} of parameters and inputs")
    for column in table.columns[1:]:
        column.no_wrap, column.justify = True, "right"
    for row in frontier_rows(frontier):
        table.add_row(*row)
    return table


def frontier_notes(frontier: MeasuredFrontier) -> list[str]:
    """Why there is no table, or why a run of ours failed; a baseline's reason is in its row."""
    if frontier.failure:
        return [f"{frontier.name}: {frontier.failure}"]
    return [f"{frontier.name}, {run.name}: {run.note}" for run in frontier.ours if run.note]


def frontier_summary(frontiers: Sequence[MeasuredFrontier]) -> list[str]:
    """Over all baselines of all models; then every pair in which ours is over the peak, slower or wrong."""
    pairs = [(f, pair) for f in frontiers for pair in f.pairs]
    timed = [(f, pair, _ratio(pair)) for f, pair in pairs if pair.ours.times]
    held = sum(pair.holds for _, pair in pairs)
    lines = [f"ours holds the peak of {held} of {len(pairs)} baselines; models: {len({f.target for f, _ in pairs})}"]
    lines += _times("ours / baseline, time at the same peak", timed)
    lines += _times("of these, ours / plain Inductor", [one for one in timed if one[1].baseline.series == PLAIN])
    lines += _minimum_peaks(frontiers)
    lines += [f"{f.name}: {_excess(pair)}" for f, pair in pairs if not pair.holds]
    lines += [
        f"{f.name}: ours takes {found} of the time of {pair.baseline.name} "
        f"at {format_size(pair.baseline.peak_bytes or 0)}"
        for f, pair, found in timed
        if found.middle > _SLOWER
    ]
    wrong = [(f, run) for f in frontiers for run in f.runs if run.wrong]
    return lines + [f"{f.name}: gradients of {run.name} are wrong by {run.gradients}" for f, run in wrong]


def _times(what: str, timed: Sequence[tuple[MeasuredFrontier, Pair, Ratio]]) -> list[str]:
    if not timed:
        return []
    middle = statistics.median(found.middle for _, _, found in timed)
    frontier, pair, worst = max(timed, key=lambda one: one[2].middle)
    slower = sum(found.middle > _SLOWER for _, _, found in timed)
    where = f"{frontier.name} against {pair.baseline.name}"
    return [f"{what}: median {middle:.2f}; worst {worst}, {where}; above {_SLOWER:g}: {slower} of {len(timed)}"]


def _minimum_peaks(frontiers: Sequence[MeasuredFrontier]) -> list[str]:
    """Ours over those of torch's budget, with and without parameters and inputs."""
    found = [(f.min_peak_bytes(OURS), f.min_peak_bytes(TORCH), f.graph_input_bytes) for f in frontiers]
    both = [(ours, theirs, inputs) for ours, theirs, inputs in found if ours is not None and theirs is not None]
    if not both:
        return []
    total = _geometric_mean([ours / theirs for ours, theirs, _ in both])
    dynamic = _geometric_mean([(ours - inputs) / (theirs - inputs) for ours, theirs, inputs in both])
    return [
        f"minimum peak, ours / torch's budget: {total:.2f} with parameters and inputs, {dynamic:.2f} without "
        f"(geometric mean; models: {len(both)})"
    ]


def _geometric_mean(numbers: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(number) for number in numbers))


def _excess(pair: Pair) -> str:
    peak = f"the peak of {pair.baseline.name} is {format_size(pair.baseline.peak_bytes or 0)}"
    if pair.ours.peak_bytes is None:
        return f"{peak}, ours does not run within it"
    return f"{peak}, ours is OVER it with {format_size(pair.ours.peak_bytes)}"


def frontier_series(frontier: MeasuredFrontier) -> list[Series]:
    """Step time, as a multiple of plain Inductor's, over peak in MiB; a series for each kind of run."""
    # Ours first: it has the colour that plans have on the page.
    names = sorted(dict.fromkeys(run.series for run in frontier.runs), key=lambda name: name != OURS)
    return [Series(name, _points(frontier, name), line=True) for name in names]


def _points(frontier: MeasuredFrontier, name: str) -> list[tuple[float, float]]:
    runs = [run for run in frontier.runs if run.series == name and run.times]
    return sorted(((run.peak_bytes or 0) / 2**20, ratio(run.times, frontier.plain.times).middle) for run in runs)


def frontier_markdown(arguments: str, frontiers: Sequence[MeasuredFrontier], lines: Sequence[str]) -> str:
    """A page: the command and versions, a table for each model, the summary."""
    versions = f"autockpt {__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    tables = [
        f"{f.name}, {format_size(f.graph_input_bytes)} of it parameters and inputs:\n\n{_page_table(f)}"
        for f in frontiers
        if not f.failure
    ]
    bullets = "\n".join(f"- {line}" for line in lines)
    return "\n\n".join([f"{versions}: `autockpt bench frontier {arguments}`", *tables, bullets]) + "\n"


def _page_table(frontier: MeasuredFrontier) -> str:
    lines = [list(_HEADINGS), ["---"] * len(_HEADINGS), *frontier_rows(frontier)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
