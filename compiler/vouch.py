"""Operators that the user vouched for: `autockpt.allow_recompute`.

The registry is read once for each compilation, into `Setup.allowed`, which is part of the keys of Inductor's caches.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import torch

from autockpt.cost_models import shown
from autockpt.errors import OptionError
from autockpt.passes.graph import kernel_name, operator_name

Operator = TypeVar("Operator")

_LOCK = threading.Lock()
_ALLOWED: set[str] = set()


def allow_recompute(operator: Operator) -> Operator:
    """Vouch for an operator: a second run on the same inputs returns the same bits and changes nothing else.

    It takes an operator (`torch.ops.mylib.op` or one of its overloads), the object that `torch.library.custom_op`
    returns, a Triton kernel, a higher-order operator, or a name such as "mylib::op"; and returns it, so it can be a
    decorator above `torch.library.custom_op`. It holds for everything that is compiled afterwards in this process.
    An operator that is random by its tags, mutates its inputs or communicates is saved all the same.
    """
    name = _name_of(operator)
    with _LOCK:
        _ALLOWED.add(name)
    return operator


def allowed_operators() -> tuple[str, ...]:
    """Names of all operators that were vouched for, sorted."""
    with _LOCK:
        return tuple(sorted(_ALLOWED))


def _name_of(operator: Any) -> str:
    if isinstance(operator, str):
        return _checked(operator)
    if isinstance(operator, torch.library.CustomOpDef):  # type: ignore[attr-defined]  # public, but not in `__all__`
        return str(operator._qualname)
    if isinstance(operator, torch._ops.OpOverloadPacket):
        return str(operator._qualified_op_name)
    if isinstance(operator, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
        return operator_name(operator)
    if type(operator).__module__.partition(".")[0] == "triton":
        return kernel_name(operator)
    raise OptionError(
        f"allow_recompute takes an operator of torch.ops, a torch.library.custom_op, a Triton kernel or a name such as "
        f'"mylib::op", and not a {type(operator).__name__}'
    )


def _checked(name: str) -> str:
    namespace, separator, rest = name.partition("::")
    if not (namespace and separator and rest):
        raise OptionError(f'allow_recompute takes a name such as "mylib::op", and not {shown(name)}')
    if namespace != "triton" and not _is_registered(namespace, *rest.split(".", 1)):
        raise OptionError(
            f"allow_recompute: no operator is registered as {shown(name)}; import the module that defines it first"
        )
    return name


def _is_registered(namespace: str, name: str, overload: str = "") -> bool:
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return packet is not None and (not overload or hasattr(packet, overload))
