"""An analysis for a terminal: the verdict, its figures, plans and baselines, memory, tensors, and what-if rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from autockpt.render.memory_chart import memory_chart
from autockpt.render.tables import frontier_table, kinds_table, tensor_table, what_if_table
from autockpt.render.tensor_groups import group_tensors
from autockpt.units import format_seconds, format_size

TENSORS = 12
"""Rows of the table of tensors, at most."""


def render(report: Mapping[str, Any], width: int) -> str:
    """As plain text, without colours."""
    file = io.StringIO()
    Console(file=file, width=width, color_system=None, force_terminal=False).print(analysis_text(report, width))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def analysis_text(report: Mapping[str, Any], width: int | None = None) -> Group:
    """For rich to print. `width` is of the terminal. Empty parts are left out."""
    parts = [part for part in _parts(report, width) if part is not None]
    spaced = [Padding(part, (0, 0, 1, 0)) for part in parts[:-1]]
    return Group(*spaced, *parts[-1:])


def _parts(report: Mapping[str, Any], width: int | None) -> Iterator[RenderableType | None]:
    yield _verdict(report)
    yield _figures(report)
    if report["frontier"] or report["baselines"]:
        yield frontier_table(report)
    yield _titled("Memory over the step", memory_chart(report, width))
    yield kinds_table(report)
    yield from _tensors(report)
    if report["what_if"]:
        yield what_if_table(report)
    yield _largest_batch(report)
    yield _list("Graph breaks", [_times(one["count"]) + _first_paragraph(one["reason"]) for one in report["breaks"]])
    yield _list("Approximations", report["device"]["approximations"])
    yield _list("Saved because nobody vouched for the operator", [_held(one) for one in report.get("held", ())])
    yield _list("Estimated operators", [f"{name}: {source}" for name, source in report["estimated"].items()])


def _held(one: Mapping[str, Any]) -> str:
    return f"{one['release']} frees up to {format_size(one['bytes'])}"


def _verdict(report: Mapping[str, Any]) -> Text:
    settings = "".join(f", {name}={value}" for name, value in report["settings"].items())
    sign, style = ("✓", "bold green") if report["fits"] else ("✗", "bold red")
    about = Text(f"{report['target']} on {report['device']['name']}{settings}\n")
    return about.append(f"{sign} {report['verdict']}", style=style)


def _figures(report: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, text in _facts(report):
        table.add_row(Text(name, style="dim"), Text(text))
    return table


def _facts(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    peak, budget = report["peak_bytes"], report["budget_bytes"]
    share = f" ({peak / budget:.0%})" if budget else ""
    yield "peak", f"{format_size(peak)} of a budget of {format_size(budget)}{share}"
    if compiled := report["compiled_bytes"]:
        yield "dry run", f"compiled peak {format_size(compiled)}; the forecast differs by {peak / compiled - 1:+.1%}"
    smallest, fastest = format_size(report["min_peak_bytes"]), format_size(report["fastest_bytes"])
    yield "plans", f"from {smallest} (minimum peak) to {fastest} (fastest)"
    seconds = f"{format_seconds(report['step_seconds'])}, {report['overhead']:.1%} over the fastest plan"
    yield "step", f"{seconds} ({format_seconds(report['fastest_seconds'])})"
    yield from _offload(report)
    if rank := report.get("rank"):
        yield from rank_facts(rank)
    if (gap := _gap(report)) is not None:
        yield "gap", f"at most {gap:.1%} of the step above the bound for any plan"
    memory = {name: size for name, size in report["memory"].items() if size}
    if report["optimizer"] and "optimizer" in memory:
        memory[f"{report['optimizer']['name']} state"] = memory.pop("optimizer")
    yield "parameters", f"{report['parameters']:,}"
    yield "memory", ", ".join(f"{name} {format_size(size)}" for name, size in memory.items())


def _offload(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What waits on the host, or why nothing does; nothing where nobody asked."""
    for found in (graph["offload"] for graph in report["graphs"] if "offload" in graph):
        if found["why_not"]:
            yield "offloaded", f"nothing: {found['why_not']}"
            continue
        moved, waits = format_size(found["moved_bytes"]), format_seconds(found["exposed_seconds"])
        tensors = sum(copy["direction"] == "out" for copy in found["copies"])
        on_host = f"{tensors} tensors, {format_size(found['host_bytes'])} on the host"
        pinned = found.get("pin_seconds")
        once = f"; pinned once, in {format_seconds(pinned)}" if pinned else ""
        yield "offloaded", f"{on_host}; {moved} moved, for which the step waits {waits}{once}"
    if others := report.get("frontier_without_offload"):
        fitting = [point["step_seconds"] for point in others if point["peak_bytes"] <= report["budget_bytes"]]
        lowest = min(point["peak_bytes"] for point in others)
        step = f"{format_seconds(min(fitting))} a step" if fitting else "no plan fits this budget"
        yield "otherwise", f"without offloading: {step}; minimum peak {format_size(lowest)}"


def rank_facts(rank: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of one rank of a job: which, its share of the parameters, and what its step consists of."""
    stages = ", ".join(map(str, rank["stages"]))
    stage = f", stage {stages} of a pipeline of ranks {_few(rank['pipeline'])}" if stages else ""
    yield "rank", f"{rank['rank']} of {rank['world_size']}{stage}, with {rank['parameters']:,} parameters"
    names = {"compiled": "kernels", "operators": "other operators", "inside": "collectives in graphs"}
    names |= {"outside": "collectives around them", "exposed": "of the step without computation"}
    yield "time", ", ".join(f"{format_seconds(rank['seconds'][name])} {text}" for name, text in names.items())


def _few(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks)) if len(ranks) <= 8 else f"{ranks[0]}, {ranks[1]}, ... {ranks[-1]}"


def _gap(report: Mapping[str, Any]) -> float | None:
    """Optimality gap as a share of the step; None where it is not known of one of its graphs."""
    if report.get("step"):
        return float(report["step"]["gap"]["every_plan_gap_of_step"])
    known = [(one.get("gap", {}).get("every_plan_gap_of_step"), one["step_seconds"]) for one in report["graphs"]]
    total = sum(seconds for _, seconds in known)
    if not total or any(gap is None for gap, _ in known):
        return None
    return float(sum(gap * seconds for gap, seconds in known) / total)


def _tensors(report: Mapping[str, Any]) -> Iterator[RenderableType | None]:
    groups = group_tensors(report)
    if not groups:
        return
    left = sum(len(group.tensors) for group in groups[TENSORS:])
    rest = [Text(f"and {left} smaller tensors, which --json and --html include")] if left else []
    yield Group(tensor_table(groups[:TENSORS]), *rest)


def _largest_batch(report: Mapping[str, Any]) -> Text | None:
    found = report["max_batch"]
    if not found:
        return None
    batch, peak, following = found["batch"], format_size(found["peak_bytes"]), found["next_bytes"]
    if following is None:
        return Text(f"A batch of {batch} fits, with a peak of {peak}; {found['stopped']}.")
    more = f"a batch of {batch + 1} needs {format_size(following)}"
    return Text(f"The largest batch that fits is {batch}, with a peak of {peak}; {more}.")


def _list(title: str, lines: list[str]) -> RenderableType | None:
    if not lines:
        return None
    table = Table.grid(padding=(0, 1))
    for line in lines:
        table.add_row("  -", Text(line))
    return _titled(title, table)


def _titled(title: str, shown: RenderableType | None) -> RenderableType | None:
    return None if shown is None else Group(Text(title, style="bold"), shown)


def _first_paragraph(reason: str) -> str:
    """Of Dynamo's explanation: what it is and a hint. What follows is for debugging Dynamo."""
    return "\n".join(line.strip() for line in reason.strip().partition("\n\n")[0].splitlines())


def _times(count: int) -> str:
    return f"{count} × " if count > 1 else ""
