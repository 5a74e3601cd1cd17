"""The calls of one model at several sizes: which sizes, in which order, and their inputs.

Sizes are arguments of the factory, such as `batch` and `length`. The model is that of the first call; of the others
only the inputs are used. Which dimensions are dynamic follows from comparing the shapes of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from math import prod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from autockpt.errors import AutockptError
from autockpt.inductor import mark_dynamic
from autockpt.measure.factory import check_settings, load_factory
from autockpt.measure.step import Training, load_training

Sizes = Mapping[str, int]
"""A number for each of these arguments of the factory."""
ORDERS = ("growing", "mixed")


def all_sizes(values: Mapping[str, Sequence[int]]) -> list[Sizes]:
    """Every combination, small ones first."""
    combined = [dict(zip(values, numbers, strict=True)) for numbers in product(*values.values())]
    return sorted(combined, key=lambda sizes: (prod(sizes.values()), tuple(sizes.values())))


def ordered(sizes: Sequence[Sizes], order: str) -> list[Sizes]:
    """`growing` as they are; `mixed` begins with the largest and takes small and large ones in turn."""
    if order == "growing":
        return list(sizes)
    left, found = list(sizes), list[Sizes]()
    while left:
        found.append(left.pop(-1 if len(found) % 2 == 0 else 0))
    return found


def check_sizes(target: str, sizes: Mapping[str, Sequence[int]], settings: Mapping[str, Any]) -> None:
    """Raise AutockptError where the factory takes no such argument, or one was given twice."""
    factory = load_factory(target)
    check_settings(factory, settings, target)
    check_settings(factory, sizes, target, option="--sizes")
    if twice := sorted(sizes.keys() & settings.keys()):
        raise AutockptError(f"{twice[0]} is given by --sizes and by --set; one of them is enough")


@dataclass(frozen=True)
class Calls:
    """Inputs of a model at every size, and the dimensions in which they differ."""

    inputs: Mapping[str, tuple[Any, ...]]
    """By the sizes in words."""
    dynamic: tuple[tuple[int, ...], ...]
    """For each tensor among the inputs, the dimensions that differ between sizes."""

    @classmethod
    def load(cls, target: str, sizes: Sequence[Sizes], settings: Mapping[str, Any], device: str | None) -> Calls:
        """Raises AutockptError where the model itself depends on the sizes, or the inputs do not."""
        inputs: dict[str, tuple[Any, ...]] = {}
        parameters: dict[str, torch.Size] = {}
        for some in sizes:
            training = load_training(target, settings={**settings, **some}, device=device)
            _check_same_model(target, some, training, parameters)
            inputs[in_words(some)] = training.inputs
        dynamic = tuple(_differing(list(shapes)) for shapes in zip(*map(_shapes, inputs.values()), strict=True))
        if not any(dynamic):
            raise AutockptError(f"{target}: the inputs have the same shapes at all --sizes")
        return cls(inputs, dynamic)

    def at(self, sizes: Sizes, marked: bool) -> tuple[Any, ...]:
        """Copies, because a mark stays on a tensor; with `marked` their dynamic dimensions are marked as such."""
        copies = tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), self.inputs[in_words(sizes)])
        if marked:
            for tensor, dimensions in zip(_tensors(copies), self.dynamic, strict=True):
                mark_dynamic(tensor, dimensions)
        found: tuple[Any, ...] = copies
        return found


def in_words(sizes: Sizes) -> str:
    return " ".join(f"{name}={number}" for name, number in sizes.items())


def input_sizes(training: Training) -> dict[str, int]:
    """Sizes of the inputs by the names that decisions use, such as `tokens.size(0)`."""
    try:
        bound = signature(training.model.forward).bind(*training.inputs).arguments
    except (TypeError, ValueError):
        return {}
    tensors = {name: value for name, value in bound.items() if isinstance(value, torch.Tensor)}
    return {f"{name}.size({at})": size for name, tensor in tensors.items() for at, size in enumerate(tensor.shape)}


def _check_same_model(target: str, sizes: Sizes, training: Training, known: dict[str, torch.Size]) -> None:
    found = {name: parameter.shape for name, parameter in training.model.named_parameters()}
    for name in known or found:
        if known and found.get(name) != known[name]:
            raise AutockptError(
                f"{target}: the model at {in_words(sizes)} has other parameters ({name}); sizes are for inputs of one "
                "model, so fix what its parameters depend on, such as the longest sequence"
            )
    known.update(found)


def _tensors(inputs: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor))


def _shapes(inputs: tuple[Any, ...]) -> list[torch.Size]:
    return [tensor.shape for tensor in _tensors(inputs)]


def _differing(shapes: Sequence[torch.Size]) -> tuple[int, ...]:
    return tuple(at for at, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1)
