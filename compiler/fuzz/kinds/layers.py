"""Kinds of operations with weights and windows: matmuls, norms, convolutions, pooling, attention, recurrences."""

from __future__ import annotations

from autockpt.fuzz.kinds.builder import Builder, Known
from autockpt.fuzz.kinds.rules import kind


def _channels(b: Builder, x: Known, code: str) -> object:
    return b.emit(f"{b.module(code)}({x})")


@kind
def linear(b: Builder) -> object:
    x = b.value((1, 4))
    width = b.choice(x.shape[-1], 8, 13, 16, 24)
    bias = b.choice(True, True, False)
    return _channels(b, x, f"nn.Linear({x.shape[-1]}, {width}, bias={bias}, dtype=D)")


@kind
def matmul(b: Builder) -> object:
    x = b.value((2, 4))
    return b.emit(f"{x} @ {b.parameter(x.shape[-1], b.choice(1, 7, 8, 16))}")


@kind
def matmul_of_two(b: Builder) -> object:
    x = b.value((2, 4))
    y = b.like(x)
    scale = 1.0 / max(x.shape[-1], x.shape[-2])
    return b.emit(
        b.choice(f"({x} @ {y}.transpose(-1, -2)) * {scale:.3f}", f"({x}.transpose(-1, -2) @ {y}) * {scale:.3f}")
    )


@kind
def baddbmm(b: Builder) -> object:
    x = b.value(3)
    batch, rows, depth = x.shape
    weight = b.parameter(batch, depth, 6)
    return b.emit(f"torch.baddbmm({b.parameter(batch, rows, 6)}, {x}, {weight}, beta=0.5)")


@kind
def einsum(b: Builder) -> object:
    x = b.value(3)
    code = b.choice("bij,bik->bjk", "bij,bkj->bik", "bij,bij->bi", "bij,bij->ij")
    return b.emit(f"torch.einsum('{code}', {x}, {b.like(x)}) * {1.0 / max(x.shape):.3f}")


@kind
def linear_algebra(b: Builder) -> object:
    x = b.value((2, 3), where=lambda v: v.shape[-1] <= 16 and v.shape[-2] >= 2)
    gram = f"{x}.transpose(-1, -2) @ {x} * 0.05 + torch.eye({x.shape[-1]}, dtype=D)"
    return b.emit(b.choice("torch.linalg.inv({})", "torch.linalg.cholesky({})", "torch.linalg.det({})").format(gram))


@kind
def layer_norm(b: Builder) -> object:
    x = b.value()
    return b.emit(
        b.choice(f"F.layer_norm({x}, ({x.shape[-1]},))", f"{b.module(f'nn.LayerNorm({x.shape[-1]}, dtype=D)')}({x})")
    )


@kind
def rms_norm(b: Builder) -> object:
    x = b.value()
    return _channels(b, x, f"nn.RMSNorm({x.shape[-1]}, dtype=D)")


@kind
def group_norm(b: Builder) -> object:
    x = b.value((3, 4), where=lambda v: v.shape[1] % 2 == 0)
    return _channels(b, x, f"nn.GroupNorm(2, {x.shape[1]}, dtype=D)")


@kind
def batch_norm(b: Builder) -> object:
    x = b.value((2, 4), where=lambda v: v.numel // v.shape[1] > 1)
    rank = "2d" if len(x.shape) == 4 else "1d"
    return _channels(b, x, f"nn.BatchNorm{rank}({x.shape[1]}, dtype=D)")


@kind
def normalize(b: Builder) -> object:
    return b.emit(f"F.normalize({b.value()}, dim=-1)")


@kind
def convolution_1d(b: Builder) -> object:
    x = b.value(3, where=lambda v: v.shape[1] <= 32)
    size = b.choice(1, 3)
    return _channels(b, x, f"nn.Conv1d({x.shape[1]}, {b.choice(4, 6, 8)}, {size}, padding={size // 2}, dtype=D)")


@kind
def convolution_2d(b: Builder) -> object:
    x = b.value(4, where=lambda v: v.shape[1] <= 32)
    channels = x.shape[1]
    groups = b.choice(1, 1, channels)
    result = channels if groups > 1 else b.choice(4, 6, 8)
    options = f"stride={b.choice(1, 1, 2)}, padding=1, groups={groups}, bias={b.choice(True, False)}, dtype=D"
    return _channels(b, x, f"nn.Conv2d({channels}, {result}, 3, {options})")


@kind
def transposed_convolution(b: Builder) -> object:
    x = b.value(4, where=lambda v: v.shape[1] <= 16 and v.shape[-1] <= 12)
    return _channels(b, x, f"nn.ConvTranspose2d({x.shape[1]}, 4, 2, stride=2, dtype=D)")


@kind
def pooling(b: Builder) -> object:
    x = b.value(4, where=lambda v: min(v.shape[2:]) >= 4)
    return b.emit(
        b.choice(
            f"F.max_pool2d({x}, 2)",
            f"F.max_pool2d({x}, 3, stride=1, padding=1)",
            f"F.avg_pool2d({x}, 2)",
            f"F.adaptive_avg_pool2d({x}, 2)",
            f"F.avg_pool2d({x}, 3, stride=2, padding=1)",
        )
    )


@kind
def pooling_1d(b: Builder) -> object:
    x = b.value(3, where=lambda v: v.shape[-1] >= 4)
    return b.emit(b.choice(f"F.max_pool1d({x}, 2)", f"F.avg_pool1d({x}, 2)", f"F.adaptive_max_pool1d({x}, 3)"))


@kind
def resampling(b: Builder) -> object:
    x = b.value(4, where=lambda v: v.shape[-1] <= 12)
    mode = b.choice("'nearest'", "'bilinear', align_corners=False")
    return b.emit(f"F.interpolate({x}, scale_factor=2, mode={mode})")


@kind
def attention(b: Builder) -> object:
    x = b.value(3, where=lambda v: v.shape[-1] % 4 == 0)
    batch, length, width = x.shape
    heads = b.choice(1, 2, 4)
    split = f".view({batch}, {length}, {heads}, {width // heads}).transpose(1, 2)"
    weight = b.parameter(3 * width, width, scale=0.2)
    options = b.choice("", ", is_causal=True", f", attn_mask=torch.ones({length}, {length}, dtype=torch.bool).tril()")
    (projected,) = b.emit(f"F.linear({x}, {weight})")
    q, k, v = (f"{projected}[..., {n * width}:{(n + 1) * width}]{split}" for n in range(3))
    (found,) = b.emit(f"F.scaled_dot_product_attention({q}, {k}, {v}{options})")
    return b.emit(f"{found}.transpose(1, 2).reshape({batch}, {length}, {width})")


@kind
def explicit_attention(b: Builder) -> object:
    x = b.value(3)
    y = b.like(x)
    scores = f"{x} @ {y}.transpose(1, 2) * {x.shape[-1] ** -0.5:.3f}"
    masked = b.choice(
        scores, f"({scores}).masked_fill(torch.ones({x.shape[1]}, {x.shape[1]}).triu(1).bool(), float('-inf'))"
    )
    weights = b.choice("F.softmax({}, dim=-1)", "F.dropout(F.softmax({}, dim=-1), 0.2)").format(masked)
    return b.emit(f"{weights} @ {y}")


@kind
def softmax(b: Builder) -> object:
    x = b.value()
    dim = b.random.randrange(len(x.shape))
    return b.emit(b.choice(f"F.softmax({x}, dim={dim})", f"F.log_softmax({x}, dim={dim})"))


@kind
def recurrence(b: Builder) -> object:
    """A recurrent network over at most eight moments, unrolled by tracing."""
    x = b.value(3, where=lambda v: 2 <= v.shape[1] <= 8)
    weight = b.parameter(x.shape[-1], x.shape[-1], scale=0.2)
    (state,) = b.emit(f"torch.zeros({x.shape[0]}, {x.shape[-1]}, dtype=D)")
    for moment in range(x.shape[1]):
        (state,) = b.emit(f"torch.tanh({state} @ {weight} + {x}[:, {moment}])")
    return state


@kind
def cross_entropy(b: Builder) -> object:
    x = b.value(2)
    target = b.integers(x.shape[1], x.shape[0])
    return b.emit(f"F.cross_entropy({x}, {target}, label_smoothing={b.choice(0.0, 0.1)})")
