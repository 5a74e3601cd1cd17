"""The tree of planned phases: which variant a call runs, by the passes of its phase that ran before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autockpt.step.calls.phase import Key, Signature, Sizes, is_forward
from autockpt.step.variant import Variant


class Route:
    """A node of the tree: what may come next, and the variant that a forward runs here."""

    __slots__ = ("following", "signature", "sizes", "variant")

    def __init__(self) -> None:
        self.following: dict[Key, Route] = {}
        self.variant: Variant | None = None
        self.sizes: Sizes = ()
        """Dynamic sizes of a forward, each at most, for which the variant was planned."""
        self.signature: Signature | None = None
        """Of the phase that ends here; None where none does."""

    def add(self, signature: Signature, variants: Sequence[Variant], sizes: Sequence[Sizes]) -> None:
        """Enter a phase, from the root. Where two begin alike, a call runs the variant that holds less."""
        route, rest = self, iter(zip(variants, sizes, strict=True))
        for key in signature:
            route = route.following.setdefault(key, Route())
            if is_forward(key):
                variant, route.sizes = next(rest)
                if route.variant is None or variant.option.held_bytes < route.variant.option.held_bytes:
                    route.variant = variant
        route.signature = signature

    def reserve(self, signature: Signature) -> None:
        """Enter a phase whose variants are compiled later."""
        route = self
        for key in signature:
            route = route.following.setdefault(key, Route())
        route.signature = signature

    def forwards(self, signature: Signature) -> Iterator[Route]:
        """The routes at which the calls of a phase start, as far as there are any."""
        route = self
        for key in signature:
            if key not in route.following:
                return
            route = route.following[key]
            if is_forward(key):
                yield route

    def covers(self, sizes: Sizes) -> bool:
        """Whether none of these sizes is larger than planned. Fewer bytes never need another plan to fit."""
        return all(size <= most for size, most in zip(sizes, self.sizes, strict=True))

    def remove(self, signature: Signature) -> None:
        """Forget every phase that begins as this one does."""
        self.following.pop(signature[0], None)

    def without(self, graphs: set[int]) -> None:
        """Forget phases in which any of these graphs is called."""
        pending = [self]
        while pending:
            route = pending.pop()
            for key in graphs & route.following.keys():
                del route.following[key]
            pending.extend(route.following.values())
