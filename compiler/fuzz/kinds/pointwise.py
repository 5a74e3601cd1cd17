"""Kinds of operations that work element by element: functions, arithmetic with broadcasting, masks, dropout."""

from __future__ import annotations

from autockpt.fuzz.kinds.builder import Builder
from autockpt.fuzz.kinds.rules import kind

_FUNCTIONS = (
    "F.gelu({})",
    "F.gelu({}, approximate='tanh')",
    "F.silu({})",
    "F.relu({})",
    "F.softplus({})",
    "F.elu({})",
    "F.leaky_relu({}, 0.1)",
    "F.hardswish({})",
    "F.mish({})",
    "F.logsigmoid({})",
    "torch.tanh({})",
    "torch.sigmoid({})",
    "torch.sin({})",
    "torch.erf({})",
    "torch.exp({}.clamp(max=2.0))",
    "torch.sqrt({}.abs() + 0.5)",
    "torch.rsqrt({}.square() + 1.0)",
    "torch.log1p({}.abs())",
    "{}.square().clamp(max=20.0)",
    "{}.pow(3) * 0.05",
    "{}.abs()",
    "1.0 / ({}.abs() + 1.0)",
    "({} * 0.7 + 0.1)",
)


@kind
def function(b: Builder) -> object:
    return b.emit(b.random.choice(_FUNCTIONS).format(b.value()))


@kind
def arithmetic(b: Builder) -> object:
    x = b.value()
    y = b.like(x)
    return b.emit(
        b.choice("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.atan2({}, {}.abs() + 1.0)").format(
            x, y
        )
    )


@kind
def broadcast(b: Builder) -> object:
    x = b.value((2, 5))
    shape = [size if b.random.random() < 0.5 else 1 for size in x.shape]
    other = b.parameter(*shape)
    return b.emit(
        b.choice(f"{x} * {other}", f"{x} + {other}", f"torch.lerp({x}, {other}, 0.3)", f"{x} / ({other}.abs() + 1.0)")
    )


@kind
def three_operands(b: Builder) -> object:
    x = b.value()
    y, z = b.like(x), b.like(x)
    return b.emit(
        b.choice(
            f"torch.addcmul({x}, {y}, {z}, value=0.5)",
            f"torch.addcdiv({x}, {y}, {z}.abs() + 1.0)",
            f"torch.lerp({x}, {y}, torch.sigmoid({z}))",
        )
    )


@kind
def where(b: Builder) -> object:
    x = b.value()
    y = b.like(x)
    return b.emit(
        b.choice(
            f"torch.where({x} > {y}, {x}, {y} * 0.5)",
            f"torch.where({x} > 0.1, {x}, torch.zeros((), dtype=D))",
            f"torch.where({y}.detach() > 0, {x}.sin(), {x}.cos())",
        )
    )


@kind
def masked_fill(b: Builder) -> object:
    x = b.value()
    return b.emit(b.choice(f"{x}.masked_fill({x} > 0.5, 0.25)", f"{x}.masked_fill({b.like(x)}.abs() < 0.3, -1.0)"))


@kind
def clamp(b: Builder) -> object:
    x = b.value()
    return b.emit(
        b.choice(
            f"{x}.clamp(-1.0, 1.0)",
            f"torch.minimum({x}, {b.like(x)})",
            f"F.hardtanh({x})",
            f"F.softshrink({x}, 0.2)",
        )
    )


@kind
def glu(b: Builder) -> object:
    return b.emit(f"F.glu({b.value(where=lambda v: v.shape[-1] % 2 == 0)}, dim=-1)")


@kind
def dropout(b: Builder) -> object:
    x = b.value()
    code = b.choice("F.dropout({}, 0.3)", "F.dropout({}, 0.5)", "F.alpha_dropout({}, 0.2, training=True)")
    return b.emit(code.format(x))


@kind
def dropout_of_channels(b: Builder) -> object:
    x = b.value(3)
    return b.emit(f"F.dropout1d({x}, 0.3)")


@kind
def noise(b: Builder) -> object:
    x = b.value()
    return b.emit(
        b.choice(
            f"{x} + torch.randn_like({x}) * 0.1",
            f"{x} * (torch.rand_like({x}) > 0.4)",
            f"{x} * torch.rand({list(x.shape)}, dtype=D)",
        )
    )


@kind
def random_kernel(b: Builder) -> object:
    """Draws that plain Inductor leaves to torch's generator."""
    x = b.value()
    return b.emit(
        b.choice(
            f"{x} * torch.bernoulli(torch.full_like({x}, 0.7))",
            f"{x} + torch.empty_like({x}).normal_(0.0, 0.1)",
            f"F.rrelu({x}, training=True)",
        )
    )


@kind
def detached(b: Builder) -> object:
    x = b.value()
    return b.emit(b.choice(f"{x} - {x}.detach().mean()", f"{x} * {b.like(x)}.detach()"))
