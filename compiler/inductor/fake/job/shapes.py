"""The form of tensors, also of those that are made of others, such as DTensor; what a graph returns for such forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


def is_wrapper(kind: type) -> bool:
    return hasattr(kind, "__tensor_flatten__")


def plain_tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among these, and in the place of wrappers those inside of them: a wrapper's own storage is no memory,
    and its size that of all ranks together."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if is_wrapper(type(value)):
                names, _ = value.__tensor_flatten__()  # type: ignore[attr-defined]  # as checked
                yield from plain_tensors(getattr(value, name) for name in names)
            else:
                yield value


@dataclass(frozen=True)
class EmptyLike:
    """Makes empty tensors of one form without holding one."""

    size: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    parts: Mapping[str, Any]
    """Of a wrapper: the forms of its tensors, and what else it names, such as its mesh; empty otherwise."""
    unflatten: Callable[..., torch.Tensor] | None = None
    context: Any = None

    @staticmethod
    def of(tensor: torch.Tensor) -> EmptyLike:
        form = tensor.size(), tensor.stride(), tensor.dtype, tensor.device
        if not is_wrapper(type(tensor)):
            return EmptyLike(*form, {})
        names, context = tensor.__tensor_flatten__()  # type: ignore[attr-defined]  # as checked
        found = {name: getattr(tensor, name) for name in names}
        parts = {name: EmptyLike.of(one) if isinstance(one, torch.Tensor) else one for name, one in found.items()}
        return EmptyLike(*form, parts, type(tensor).__tensor_unflatten__, context)  # type: ignore[attr-defined]  # as above

    def make(self) -> torch.Tensor:
        if self.unflatten is None:
            return torch.empty_strided(self.size, self.stride, dtype=self.dtype, device=self.device)
        inner = {name: part.make() if isinstance(part, EmptyLike) else part for name, part in self.parts.items()}
        return self.unflatten(inner, self.context, self.size, self.stride)


@dataclass(frozen=True)
class CallForms:
    """What a graph returns for arguments of one form."""

    has_grad: tuple[bool, ...]
    """Of each output: whether it requires a gradient."""
    gradients: tuple[EmptyLike | None, ...]
    """For each argument."""

    @staticmethod
    def of(run: Callable[..., Sequence[Any]], arguments: Sequence[Any]) -> CallForms:
        """By a run of the graph, and of its backward where an argument is a wrapper: the gradient of a DTensor may have
        other placements than the tensor."""
        detached = [_detached(argument) for argument in arguments]
        outputs = run(*detached)
        has_grad = tuple(isinstance(out, torch.Tensor) and out.requires_grad for out in outputs)
        gradients = [EmptyLike.of(one) if isinstance(one, torch.Tensor) else None for one in detached]
        if any(is_wrapper(type(one)) for one in detached):
            roots = [out for out, has in zip(outputs, has_grad, strict=True) if has]
            needed = [n for n, one in enumerate(detached) if isinstance(one, torch.Tensor) and one.requires_grad]
            for n, gradient in zip(needed, _gradients(roots, [detached[n] for n in needed]), strict=True):
                gradients[n] = None if gradient is None else EmptyLike.of(gradient)
        return CallForms(has_grad, tuple(gradients))


def _gradients(roots: list[torch.Tensor], inputs: list[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    if not roots or not inputs:
        return [None] * len(inputs)
    return torch.autograd.grad(roots, inputs, [torch.empty_like(root) for root in roots], allow_unused=True)


def form_key(argument: Any) -> Any:
    """Equal for arguments of equal form."""
    if not isinstance(argument, torch.Tensor):
        return repr(argument)
    form = argument.size(), argument.stride(), argument.dtype, argument.device, argument.requires_grad
    return (*form, repr(argument.__tensor_flatten__()[1])) if is_wrapper(type(argument)) else form  # type: ignore[attr-defined]  # as above


def _detached(argument: Any) -> Any:
    """The same without the graph behind it, to see which outputs require a gradient."""
    if isinstance(argument, torch.Tensor):
        return argument.detach().requires_grad_(argument.requires_grad)
    return argument
