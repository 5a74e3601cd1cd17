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


class Follower:
    """A place in the tree: where the passes of the current phase have led so far."""

    __slots__ = ("root", "route")

    def __init__(self) -> None:
        self.root = Route()
        self.route: Route | None = None
        """None where no planned phase begins like the current one, or none has begun."""

    def start(self, graph: Key, sizes: Sizes) -> bool:
        """A phase begins with a forward of this graph; whether one that does is planned for these sizes."""
        self.route = self.root
        planned = self.root.following.get(graph)
        return planned is not None and planned.covers(sizes)

    def advance(self, key: Key, sizes: Sizes = ()) -> Route | None:
        """Follow the tree by one pass."""
        route = self.route
        if route is not None:
            route = route.following.get(key)
            if sizes and route is not None and not route.covers(sizes):
                route = None
            self.route = route
        return route

    @property
    def ended(self) -> Signature | None:
        """The planned phase that may end here."""
        return self.route.signature if self.route is not None else None

    def leave(self) -> Signature | None:
        """The current phase is over; the planned one that it was, if it was any."""
        signature, self.route = self.ended, None
        return signature
