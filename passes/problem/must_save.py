"""Rules that say why a value may not be recomputed. One rule is one short function that returns a reason or None.

The last of them, for operators that nobody vouched for, is the only one that a user can lift (`allow_recompute`);
`held_operators` says of which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value, is_inexact_reduction
from autockpt.passes.problem.plan import InductorRules, Lowering, Problem

_AGAINST_TAG = "; saved although it is tagged to be recomputed"
_RULES_OF_2_13 = InductorRules()
MustSaveRule = Callable[[Value, Lowering, InductorRules], str | None]


def find_must_save(
    graph: JointGraph, lowering: Lowering, allowed: Collection[str] = (), inductor: InductorRules = _RULES_OF_2_13
) -> Mapping[str, str]:
    """The forward values that may not be recomputed, each with the first reason that applies.

    `allowed`: names of operators that the user vouched for. `inductor`: what the installed release of Inductor does.
    """
    found: dict[str, str] = {}
    for value in graph.values:
        if value.role is not Role.FORWARD:
            continue
        reasons = (rule(value, lowering, inductor) for rule in RULES)
        reason = next((reason for reason in reasons if reason), None) or _unvouched(value, allowed)
        # Recomputing one of several results runs their common operation.
        reason = found.get(_maker(graph, value), reason)
        if reason:
            found[value.name] = f"{reason}{_AGAINST_TAG}" if Trait.MUST_RECOMPUTE in value.traits else reason
    return found


def _maker(graph: JointGraph, value: Value) -> str:
    """The operation with several results that a value is one of, as a tensor or as a number; empty if it is none."""
    if value.kind not in (Kind.PART, Kind.SYMBOL) or len(value.inputs) != 1:
        return ""
    source = graph.by_name[value.inputs[0]]
    return source.name if (source.kind.runs or source.kind is Kind.PART) and not source.storage else ""


def seed(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "seed: a second one would be another" if Trait.SEED in value.traits else None


def random(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "random: would draw again" if Trait.RANDOM in value.traits else None


def seeded(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    """Inductor's C++ kernels draw the same numbers from the same seed; its CUDA kernels do so from torch 2.15 on.

    Before, a kernel over one dimension draws with `rand4x` and every other with `rand`, so the numbers depend on what
    the draw was fused with (pytorch#198333).
    """
    if Trait.SEEDED not in value.traits:
        return None
    if lowering is Lowering.INDUCTOR and (value.device == "cpu" or inductor.gpu_numbers_repeat):
        return None
    return f"random: a kernel of another shape on {value.device} draws other numbers from the same seed"


def mutation(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "mutates an input: may run only once" if Trait.MUTATES in value.traits else None


def unrepeatable(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "not repeatable: its last bits differ from run to run" if Trait.UNREPEATABLE in value.traits else None


def stale(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "reads an input that the forward writes to: would see the new value" if Trait.STALE in value.traits else None


def collective(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    if Trait.GATHERED_AGAIN in value.traits:
        return None
    return "collective: every rank would have to run it again" if Trait.COLLECTIVE in value.traits else None


def effect(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "has a side effect: ordered by a token, may run only once" if Trait.EFFECT in value.traits else None


def data_size(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    """torch passes such a number to the backward with every saved tensor of that size; it may be defined only once."""
    return (
        "a size that depends on data: crosses to the backward as a number" if Trait.DATA_SIZE in value.traits else None
    )


def inexact_reduction(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    """Fused with other loops, a reduction may accumulate in another order, which changes the last bits of its result.

    Inductor's CPU kernel for the other memory layout changes 45 to 60 of 64 results of sum, prod, std and vector norms
    over 1,000 random floats, half of those of logsumexp, and none of amax. In the statistics of a batch norm those
    bits decide on which side of zero a ReLU's input is: the gradients of a ResNet were off by 2e-3.
    """
    if lowering is not Lowering.INDUCTOR or not is_inexact_reduction(value.operator):
        return None
    return "reduction: would accumulate in another order"


def tagged(value: Value, lowering: Lowering, inductor: InductorRules) -> str | None:
    return "tagged MUST_SAVE by the user" if Trait.MUST_SAVE in value.traits else None


RULES: tuple[MustSaveRule, ...] = (
    seed,
    random,
    seeded,
    mutation,
    stale,
    collective,
    effect,
    unrepeatable,
    data_size,
    inexact_reduction,
    tagged,
)
"""The first that applies gives the reason."""


def held_operators(problem: Problem) -> Mapping[str, int]:
    """Operators that nobody vouched for, and how many of their calls are must-save for that reason alone."""
    graph = problem.graph
    found: Counter[str] = Counter()
    for value in graph.values:
        held = _held(value, problem.allowed)
        if held and problem.must_save.get(value.name, "").removesuffix(_AGAINST_TAG) == _reason(held):
            found.update(held)
    return {shown_operator(name): found[name] for name in sorted(found)}


def is_held(value: Value, allowed: Collection[str]) -> bool:
    """Whether its call has an operator that nobody vouched for, so that it may run only where the model runs it."""
    return bool(_held(value, allowed))


def _unvouched(value: Value, allowed: Collection[str]) -> str | None:
    held = _held(value, allowed)
    return _reason(held) if held else None


def _held(value: Value, allowed: Collection[str]) -> tuple[str, ...]:
    """Operators of its call that nobody vouched for. A name without overload allows all overloads."""
    return tuple(name for name in value.unvouched if name not in allowed and name.partition(".")[0] not in allowed)


def _reason(held: tuple[str, ...]) -> str:
    names = " and ".join(f'"{shown_operator(name)}"' for name in held)
    return f"nobody vouched that {names} may run twice: autockpt.allow_recompute releases it"


def shown_operator(name: str) -> str:
    """As people write it and `allow_recompute` takes it."""
    return name.removesuffix(".default")
