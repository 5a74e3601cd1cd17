"""The tree of planned phases: which variant a call runs, by the passes of its phase that ran before it."""

from __future__ import annotations

from autockpt.step.calls.phase import Key, Signature
from autockpt.step.variant import Variant


class Route:
    """A node of the tree: what may come next, and the variant that a forward runs here."""

    __slots__ = ("following", "signature", "variant")

    def __init__(self) -> None:
        self.following: dict[Key, Route] = {}
        self.variant: Variant | None = None
        self.signature: Signature | None = None
        """Of the phase that ends here; None where none does."""

    def add(self, signature: Signature, variants: list[Variant]) -> None:
        """Enter a phase, from the root. Where two begin alike, a call runs the variant that holds less."""
        route, rest = self, iter(variants)
        for key in signature:
            route = route.following.setdefault(key, Route())
            if is_forward(key):
                variant = next(rest)
                if route.variant is None or variant.option.held_bytes < route.variant.option.held_bytes:
                    route.variant = variant
        route.signature = signature

    def remove(self, signature: Signature) -> None:
        """Forget every phase that begins as this one does."""
        self.following.pop(signature[0], None)

    def without(self, graphs: set[int]) -> None:
        """Forget phases in which any of these graphs is called."""
        pending = [self]
        while pending:
            route = pending.pop()
            for key in [key for key in route.following if is_forward(key) and key[0] in graphs]:
                del route.following[key]
            pending.extend(route.following.values())


def is_forward(key: Key) -> bool:
    return len(key) > 1
