"""Why a value cannot be computed again. One rule, one short function; a refusal carries its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autockpt.passes.graph import JointGraph, Kind, Role, Trait, Value
from autockpt.passes.problem.plan import Lowering

Rule = Callable[[Value, Lowering], str | None]

_RULES: list[Rule] = []
_SUMS = ("aten.sum.", "aten.mean.", "aten.var.", "aten.var_mean.", "aten.std.", "prims.var.", "prims.sum.")


def find_must_save(graph: JointGraph, lowering: Lowering) -> Mapping[str, str]:
    """The first reason of every forward value that has one."""
    pins: dict[str, str] = {}
    for value in graph.values:
        if value.role is Role.FORWARD:
            reasons = (rule(value, lowering) for rule in _RULES)
            reason = next((reason for reason in reasons if reason), None)
            if value.kind is Kind.PART:
                # What an operation with several results may not do, none of its results may.
                reason = pins.get(value.inputs[0], reason)
            if reason:
                pins[value.name] = reason
    return pins


def pin(rule: Rule) -> Rule:
    _RULES.append(rule)
    return rule


@pin
def seed(value: Value, lowering: Lowering) -> str | None:
    return "seed: a second one would be another" if Trait.SEED in value.traits else None


@pin
def random(value: Value, lowering: Lowering) -> str | None:
    return "random: would draw again" if Trait.RANDOM in value.traits else None


@pin
def seeded(value: Value, lowering: Lowering) -> str | None:
    """Inductor's C++ kernels draw the same numbers from the same seed; its CUDA kernels do not.

    There a kernel over one dimension draws with `rand4x` and every other with `rand`, so the numbers
    depend on what the draw was fused with (pytorch#198333).
    """
    if Trait.SEEDED not in value.traits:
        return None
    if lowering is Lowering.INDUCTOR and value.device == "cpu":
        return None
    return f"random: a kernel of another shape on {value.device} draws other numbers from the same seed"


@pin
def mutation(value: Value, lowering: Lowering) -> str | None:
    return "mutates an input: may run only once" if Trait.MUTATES in value.traits else None


@pin
def stale(value: Value, lowering: Lowering) -> str | None:
    return "reads an input that the forward writes to: would see the new value" if Trait.STALE in value.traits else None


@pin
def collective(value: Value, lowering: Lowering) -> str | None:
    return "collective: every rank would have to run it again" if Trait.COLLECTIVE in value.traits else None


@pin
def effect(value: Value, lowering: Lowering) -> str | None:
    return "has a side effect: ordered by a token, may run only once" if Trait.EFFECT in value.traits else None


@pin
def opaque(value: Value, lowering: Lowering) -> str | None:
    return "higher-order operator: not known to be pure" if Trait.OPAQUE in value.traits else None


@pin
def added_up(value: Value, lowering: Lowering) -> str | None:
    """Fused with other loops, a sum is added up in another order and differs in its last bits.

    Those of a batch norm then decide on which side of zero a ReLU is: a ResNet's gradients were off by 2e-3.
    """
    if lowering is not Lowering.INDUCTOR or not value.operator.startswith(_SUMS):
        return None
    return "sum: would be added up in another order"


@pin
def tagged(value: Value, lowering: Lowering) -> str | None:
    return "tagged MUST_SAVE by the user" if Trait.MUST_SAVE in value.traits else None
