"""Facts that torch knows about an operator, by the operator's name: tags, schema, registered FLOP formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from autockpt.cost_models.work import TensorSpec


@cache
def overload_of(operator: str) -> torch._ops.OpOverload | None:
    """`aten.add.Tensor` -> the operator; None if there is none of that name."""
    namespace, _, rest = operator.partition(".")
    name, _, overload = rest.partition(".")
    # Dunder names are attributes of the namespace object itself, not operators.
    if not overload or name.startswith("__") or not torch._C._jit_get_schemas_for_operator(f"{namespace}::{name}"):
        return None
    found: Any = getattr(getattr(getattr(torch.ops, namespace), name), overload, None)
    return found if isinstance(found, torch._ops.OpOverload) else None


@cache
def is_pointwise(operator: str) -> bool:
    found = overload_of(operator)
    return found is not None and torch.Tag.pointwise in found.tags


@cache
def is_view(operator: str) -> bool:
    """Whether all results alias inputs and nothing is written."""
    found = overload_of(operator)
    if found is None:
        return "getitem" in operator
    aliases = [result.alias_info for result in found._schema.returns]
    return bool(aliases) and not found._schema.is_mutable and all(alias is not None for alias in aliases)


@cache
def is_number(operator: str) -> bool:
    """Whether an operator computes or checks a size. Operators that take a tensor and return nothing do not count: they
    may have any effect."""
    found = overload_of(operator)
    if found is None:
        return operator.startswith(("<built-in function", "<function sym_", "math."))
    takes, returns = ([str(part.type) for part in parts] for parts in (found._schema.arguments, found._schema.returns))
    is_query = found.namespace == "aten" and bool(returns)
    return not any("Tensor" in kind for kind in returns) and (is_query or not any("Tensor" in kind for kind in takes))


def registered_flops(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> float | None:
    """FLOPs by a formula of `torch.utils.flop_counter.register_flop_formula`; None without one."""
    formula = flop_registry.get(getattr(target, "overloadpacket", target))
    return None if formula is None else formula(*args, **kwargs, out_val=result)


def takes_tensors(operator: str, count: int) -> bool:
    """Whether the operator's arguments are exactly `count` tensors."""
    found = overload_of(operator)
    return found is not None and [str(argument.type) for argument in found._schema.arguments] == ["Tensor"] * count


def meta_tensor(spec: TensorSpec) -> Any:
    """A tensor argument for a FLOP formula: on the meta device, or the bare shape if it is symbolic."""
    if all(isinstance(size, int) for size in spec.shape):
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")
    return spec.shape
