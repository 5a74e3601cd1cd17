"""Kinds of operations that move elements or share storages: views, concatenations, padding."""

from __future__ import annotations

import math

from autockpt.fuzz.kinds.builder import Builder
from autockpt.fuzz.kinds.rules import kind


@kind
def reshape(b: Builder) -> object:
    x = b.value()
    divisors = [d for d in range(1, x.numel + 1) if x.numel % d == 0 and d <= 64]
    first = b.random.choice(divisors)
    rest = x.numel // first
    second = b.random.choice([d for d in divisors if rest % d == 0])
    shape = b.choice((first, rest), (first, second, rest // second), (-1,))
    return b.emit(f"{x}.reshape({', '.join(map(str, shape))})")


@kind
def image(b: Builder) -> object:
    """A value as images, so that windows have something to slide over."""
    x = b.value((1, 3), where=lambda v: v.numel % 64 == 0 and v.numel >= 256)
    channels = math.gcd(x.numel // 64, 8)
    return b.emit(f"{x}.reshape({x.numel // 64 // channels}, {channels}, 8, 8)")


@kind
def sequence(b: Builder) -> object:
    """Images or anything else as a batch of sequences."""
    x = b.value((2, 5), where=lambda v: len(v.shape) != 3 and v.numel % 16 == 0 and v.numel >= 64)
    length = math.gcd(x.numel // 16, 8)
    return b.emit(f"{x}.reshape({x.numel // 16 // length}, {length}, 16)")


@kind
def transpose(b: Builder) -> object:
    x = b.value((2, 5))
    first, second = b.random.sample(range(len(x.shape)), 2)
    return b.emit(f"{x}.transpose({first}, {second})")


@kind
def permute(b: Builder) -> object:
    x = b.value((3, 4))
    order = b.random.sample(range(len(x.shape)), len(x.shape))
    return b.emit(f"{x}.permute({', '.join(map(str, order))})" + b.choice("", ".contiguous()"))


@kind
def slice_(b: Builder) -> object:
    x = b.value(where=lambda v: v.shape[-1] >= 4)
    return b.emit(b.choice(f"{x}[..., 1:]", f"{x}[..., ::2]", f"{x}[..., :-1]", f"{x}.narrow(-1, 1, 2)"))


@kind
def select(b: Builder) -> object:
    x = b.value((2, 5))
    return b.emit(b.choice(f"{x}[0]", f"{x}[:, -1]", f"{x}.select(-1, 0)"))


@kind
def expand(b: Builder) -> object:
    x = b.value((1, 3), where=lambda v: v.numel <= 4096)
    return b.emit(
        b.choice(
            f"{x}.unsqueeze(0).expand(3, {', '.join(['-1'] * len(x.shape))})",
            f"{x}.repeat(2, {', '.join(['1'] * len(x.shape))})",
        )
    )


@kind
def unfold(b: Builder) -> object:
    x = b.value((1, 3), where=lambda v: v.shape[-1] >= 6 and v.numel <= 4096)
    return b.emit(b.choice(f"{x}.unfold(-1, 4, 2)", f"{x}.unfold(-1, 3, 1)"))


@kind
def diagonal(b: Builder) -> object:
    x = b.value((2, 4))
    return b.emit(b.choice(f"{x}.diagonal(dim1=-2, dim2=-1)", f"{x}.tril()", f"{x}.triu(1)"))


@kind
def flip(b: Builder) -> object:
    x = b.value()
    return b.emit(b.choice(f"{x}.flip(-1)", f"{x}.roll(1, 0)", f"{x}.flip(0)"))


@kind
def concatenation(b: Builder) -> object:
    x = b.value((1, 4))
    y = b.like(x)
    dim = b.random.randrange(len(x.shape))
    return b.emit(
        b.choice(
            f"torch.cat([{x}, {y}], dim={dim})",
            f"torch.stack([{x}, {y}], dim=0)",
            f"torch.cat([{x}, {x} * 2.0], dim=0)",
        )
    )


@kind
def split(b: Builder) -> object:
    x = b.value(where=lambda v: v.shape[-1] >= 2 and v.shape[-1] % 2 == 0)
    half = x.shape[-1] // 2
    return b.emit(b.choice(f"{x}.chunk(2, dim=-1)", f"{x}.split({half}, dim=-1)"), results=2)


@kind
def unbind(b: Builder) -> object:
    x = b.value((2, 4), where=lambda v: v.shape[0] in (2, 3))
    return b.emit(f"{x}.unbind(0)", results=x.shape[0])


@kind
def padding(b: Builder) -> object:
    x = b.value((2, 4), where=lambda v: v.shape[-1] >= 3)
    return b.emit(b.choice(f"F.pad({x}, (1, 2))", f"F.pad({x}, (1, 1), value=0.5)", f"F.pad({x}, (0, 0, 1, 1))"))


@kind
def merged_heads(b: Builder) -> object:
    """A transposed view that is read twice, once as it is and once copied."""
    x = b.value((3, 4))
    (turned,) = b.emit(f"{x}.transpose(-1, -2)")
    return b.emit(f"{turned} * 0.5 + {turned}.contiguous().sin()")
