"""Kinds of operations that are more than a function of floats: in place, buffers, dtypes, complex, custom."""

from __future__ import annotations

from autockpt.fuzz.kinds.builder import Builder
from autockpt.fuzz.kinds.rules import kind


@kind
def in_place(b: Builder) -> object:
    x = b.value()
    y = b.like(x)
    return b.emit(
        b.choice(
            f"{x}.clone().mul_({y})",
            f"({x} * 2.0).add_({y}, alpha=0.5).tanh_()",
            f"{x}.clone().masked_fill_({y} > 0.3, 0.1)",
            f"{x}.clone().copy_({y}.sin())",
            f"torch.zeros_like({x}).copy_({y}).add_({x})",
        )
    )


@kind
def in_place_on_a_value(b: Builder) -> object:
    """Writes into a value that others may read: all that share its storage change."""
    x = b.value(where=lambda v: v.name.startswith("v"))
    return b.emit(b.choice(f"{x}.mul_(0.5)", f"{x}.add_(0.25)", f"{x}.clamp_(-2.0, 2.0)", f"{x}.sigmoid_()"))


@kind
def in_place_through_a_view(b: Builder) -> object:
    x = b.value((2, 4), where=lambda v: v.shape[0] >= 2)
    (copied,) = b.emit(f"{x}.clone()")
    b.emit(b.choice(f"{copied}[0].mul_(0.5)", f"{copied}[..., :1].add_(1.0)", f"{copied}.transpose(0, 1)[0].zero_()"))
    return b.emit(f"{copied} * 1.5")


@kind
def buffer(b: Builder) -> object:
    """A buffer that moves with every step, read before it moves or after."""
    x = b.value((2, 4))
    moved = b.buffer(f"torch.full(({x.shape[-1]},), 0.5, dtype=D)")
    mean = f"{x}.detach().mean(dim={tuple(range(len(x.shape) - 1))})"
    if b.random.random() < 0.5:
        (result,) = b.emit(f"{x} * {moved}.sigmoid()")
        b.emit(f"{moved}.mul_(0.9).add_({mean}, alpha=0.1)")
        return result
    b.emit(f"{moved}.lerp_({mean}, 0.1)")
    return b.emit(f"{x} - {moved}")


@kind
def written_input(b: Builder) -> object:
    x = b.value((1, 3))
    written = b.input(f"torch.randn({list(x.shape)}, dtype=D)")
    (result,) = b.emit(b.choice(f"{x} + {written}", f"{x} * {written}.cos()"))
    b.emit(b.choice(f"{written}.mul_(0.5)", f"{written}.copy_({x}.detach())", f"{written}.zero_()"))
    return result


@kind
def bfloat16(b: Builder) -> object:
    x = b.value((2, 4))
    weight = b.parameter(x.shape[-1], b.choice(8, 16))
    return b.emit(
        b.choice(
            f"({x}.to(torch.bfloat16) @ {weight}.to(torch.bfloat16)).to(D)",
            f"F.gelu({x}.to(torch.bfloat16)).to(D)",
            f"F.softmax({x}.to(torch.bfloat16).float(), dim=-1).to(D)",
        )
    )


@kind
def float16(b: Builder) -> object:
    x = b.value()
    return b.emit(f"({x}.to(torch.float16) * 1.5).sin().to(D)")


@kind
def low_precision_chain(b: Builder) -> object:
    x = b.value((2, 3))
    weight = b.parameter(x.shape[-1], x.shape[-1])
    (low,) = b.emit(f"{x}.to(torch.bfloat16)")
    (low,) = b.emit(f"F.silu({low} @ {weight}.to(torch.bfloat16)) + {low}")
    return b.emit(f"F.layer_norm({low}, ({x.shape[-1]},)).to(D)")


@kind
def complex_numbers(b: Builder) -> object:
    x = b.value()
    y = b.like(x)
    return b.emit(
        b.choice(
            f"(torch.complex({x}, {y}) * torch.complex({y}, {x} + 1.0)).real",
            f"torch.view_as_real(torch.complex({x}, {y}) * (0.5 + 1.0j)).sum(-1)",
            f"torch.fft.rfft({x}, norm='ortho').abs()",
            f"torch.fft.irfft(torch.fft.rfft({x}, norm='ortho') * 0.5, n={x.shape[-1]}, norm='ortho')",
        )
    )


@kind
def rotary(b: Builder) -> object:
    """Rotary position embedding by complex numbers, as Llama's reference code has it."""
    x = b.value(3, where=lambda v: v.shape[-1] % 2 == 0)
    batch, length, width = x.shape
    angles = b.buffer(f"torch.polar(torch.ones({length}, {width // 2}), torch.randn({length}, {width // 2}))")
    pairs = f"torch.view_as_complex({x}.float().reshape({batch}, {length}, {width // 2}, 2))"
    return b.emit(f"torch.view_as_real({pairs} * {angles}).flatten(-2).to(D)")


@kind
def custom_operator(b: Builder) -> object:
    x = b.value()
    if b.random.random() < 0.5:
        return b.emit(f"ops.scaled_tanh({x}, 0.7)")
    return b.emit(f"ops.two_results({x})", results=2)


@kind
def impure_operator(b: Builder) -> object:
    x = b.value()
    y = b.like(x)
    return b.emit(b.choice(f"{x} * ops.drawn({y})", f"{x} * ops.counted({y}) * 0.2"))


@kind
def checkpointed(b: Builder) -> object:
    x = b.value((2, 4))
    weight = b.parameter(x.shape[-1], x.shape[-1])
    body = b.choice(
        "torch.tanh(t @ {}) * t", "F.dropout(F.gelu(t @ {}), 0.3)", "F.layer_norm(t @ {} + t, t.shape[-1:])"
    )
    return b.emit(f"checkpoint(lambda t: {body.format(weight)}, {x}, use_reentrant=False)")


@kind
def autocast(b: Builder) -> object:
    x = b.value((2, 3))
    weight = b.parameter(8, x.shape[-1])
    return b.emit(f"ops.autocast_linear({x}, {weight}).to(D)")
