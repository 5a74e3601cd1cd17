"""Kinds of operations that index, scan, sort and reduce."""

from __future__ import annotations

from autockpt.fuzz.kinds.builder import Builder
from autockpt.fuzz.kinds.rules import kind


@kind
def embedding(b: Builder) -> object:
    rows, width = b.choice(5, 11, 32), b.choice(4, 8, 16)
    index = b.integers(rows, b.choice(2, 3, 4), b.choice(5, 8))
    if b.random.random() < 0.3:
        return b.emit(f"F.embedding_bag({index}, {b.parameter(rows, width)})")
    return b.emit(f"F.embedding({index}, {b.parameter(rows, width)})")


@kind
def gather(b: Builder) -> object:
    x = b.value((2, 3))
    index = b.integers(x.shape[1], *x.shape)
    return b.emit(f"{x}.gather(1, {index})")


@kind
def index_select(b: Builder) -> object:
    x = b.value()
    index = b.integers(x.shape[0], b.choice(1, 3, 8))
    return b.emit(b.choice(f"{x}.index_select(0, {index})", f"{x}[{index}]"))


@kind
def indexed_twice(b: Builder) -> object:
    x = b.value((2, 4))
    rows, columns = b.integers(x.shape[0], 6), b.integers(x.shape[1], 6)
    return b.emit(f"{x}[{rows}, {columns}]")


@kind
def scatter(b: Builder) -> object:
    x = b.value(2)
    y = b.like(x)
    index = b.integers(x.shape[0], *x.shape)
    return b.emit(
        b.choice(
            f"{x}.scatter_add(0, {index}, {y})",
            f"{x}.scatter_reduce(0, {index}, {y}, 'mean')",
            f"{x}.scatter_reduce(0, {index}, {y}, 'amax')",
        )
    )


@kind
def index_add(b: Builder) -> object:
    x = b.value((1, 3))
    index = b.integers(x.shape[0], x.shape[0])
    return b.emit(f"{x}.index_add(0, {index}, {b.like(x)}, alpha=0.5)")


@kind
def index_put(b: Builder) -> object:
    x = b.value((2, 3))
    index = b.integers(x.shape[0], 4)
    values = b.parameter(4, *x.shape[1:])
    return b.emit(f"{x}.index_put(({index},), {values}, accumulate=True)")


@kind
def scan(b: Builder) -> object:
    x = b.value()
    dim = b.random.randrange(len(x.shape))
    return b.emit(
        b.choice(
            f"{x}.cumsum({dim}) * {1.0 / x.shape[dim]:.3f}",
            f"torch.sigmoid({x}).cumprod({dim})",
            f"{x}.logcumsumexp({dim})",
            f"{x}.cummax({dim}).values",
        )
    )


@kind
def reduction(b: Builder) -> object:
    x = b.value((2, 5))
    dim = b.random.randrange(len(x.shape))
    keep = b.choice("", ", keepdim=True")
    code = b.choice("mean", "amax", "logsumexp", "sum", "var", "std", "norm", "amin")
    scale = f" * {1.0 / x.shape[dim]:.3f}" if code in ("sum", "norm") else ""
    return b.emit(f"{x}.{code}(dim={dim}{keep}){scale}")


@kind
def centred(b: Builder) -> object:
    """A reduction whose result is broadcast back."""
    x = b.value((2, 5))
    return b.emit(
        b.choice(
            f"{x} - {x}.mean(dim=-1, keepdim=True)",
            f"{x} / (1.0 + {x}.square().sum(dim=0, keepdim=True))",
            f"{x} * torch.rsqrt({x}.var(dim=-1, keepdim=True, correction=0) + 0.1)",
        )
    )


@kind
def sort(b: Builder) -> object:
    x = b.value(where=lambda v: v.shape[-1] >= 2)
    return b.emit(b.choice(f"{x}.sort(dim=-1).values", f"{x}.sort(dim=0, descending=True).values"))


@kind
def top_k(b: Builder) -> object:
    x = b.value(where=lambda v: v.shape[-1] >= 4)
    (best, index) = b.emit(f"{x}.topk(2, dim=-1)", results=2)
    return b.emit(f"{x}.gather(-1, {index}).tanh() + {best}")


@kind
def routed(b: Builder) -> object:
    """A mixture of two experts without sizes that depend on data."""
    x = b.value(2)
    gate = b.parameter(x.shape[1], 2)
    weights = [b.parameter(x.shape[1], x.shape[1]) for _ in range(2)]
    (share,) = b.emit(f"F.softmax({x} @ {gate}, dim=-1)")
    mixed = " + ".join(f"{share}[:, {n}:{n + 1}] * torch.tanh({x} @ {weight})" for n, weight in enumerate(weights))
    return b.emit(mixed)


@kind
def one_hot(b: Builder) -> object:
    x = b.value(2)
    index = b.integers(x.shape[0], 5)
    return b.emit(f"F.one_hot({index}, {x.shape[0]}).to(D) @ {x}")
