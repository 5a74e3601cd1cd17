"""Formulas of symbolic sizes, evaluated at hints, say what the same formulas say of numbers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import pytest
import sympy
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from autockpt.cost_models import TensorSpec, Work, evaluate, work_of
from autockpt.cost_models.formulas.lookup import rule_of
from autockpt.cost_models.formulas.rules import RULES

HINTS = {"b": 3, "s": 20, "t": 12, "h": 2, "d": 8, "k": 5, "n": 7}

# operator: shapes in -> shapes out | arguments. One line at least for every rule; letters are sizes.
SAMPLES = """
aten.mm: s k, k n -> s n
aten._int_mm: s k, k n -> s n
aten.bmm: b s k, b k n -> b s n
aten.addmm: n, s k, k n -> s n
aten.baddbmm: b s n, b s k, b k n -> b s n
aten.addbmm: s n, b s k, b k n -> s n
aten.mv: s k, k -> s
aten.addmv: s, s k, k -> s
aten._grouped_mm: s k, b k n, b -> s n
aten._grouped_mm: b s k, k n, b -> s n
aten._trilinear: b k, n k d, b d -> b n | expand1=[1, 3], expand2=[0], expand3=[1, 2]
torch_nn._linear_cross_entropy_batch_chunked: s d, n d, s -> s, s d, n d
aten._scaled_dot_product_flash_attention: b h s d, b h t d, b h t d -> b h s d, b h s
aten._scaled_dot_product_flash_attention: b h s d, b h t d, b h t d -> b h s d | is_causal=True, dropout_p=0.1
aten._scaled_dot_product_flash_attention_backward: b h s d, b h s d, b h t d, b h t d -> b h s d, b h t d, b h t d
aten._flash_attention_forward: b s h d, b t h d, b t h d -> b s h d
aten._flash_attention_backward: b s h d, b s h d, b t h d, b t h d -> b s h d, b t h d, b t h d
aten.convolution: b 3 s s, 8 3 3 3 -> b 8 s s
aten.convolution: b 8 s s, 8 1 3 3 -> b 8 s s | transposed=False, groups=8
aten.cudnn_convolution_transpose: b 8 s s, 8 3 2 2 -> b 3 2*s 2*s
aten.convolution_backward: b 8 s s, b 3 s s, 8 3 3 3 -> b 3 s s, 8 3 3 3, 8 | transposed=False
aten.conv_tbc: t b k, 3 k n, n -> t-2 b n
aten.linalg_cholesky_ex: b k k -> b k k
aten.linalg_lu: b s t -> s t
aten.linalg_inv_ex: k k -> k k
aten.cholesky_inverse: k k -> k k
aten.geqrf: s t -> s t
aten.linalg_qr: s t -> s t, t t
aten._linalg_eigh: k k -> k, k k
aten.linalg_eig: k k -> k, k k
aten._linalg_svd: s t -> s t, t, t t
aten.linalg_matrix_exp: k k -> k k
aten._linalg_solve_ex: b k k, b k n -> b k n
aten.linalg_solve_triangular: b k k, b k n -> b k n
aten.linalg_lu_solve: b k k, b k, b k n -> b k n
aten.ormqr: s t, t, s n -> s n
aten._cdist_forward: b s d, b t d -> b s t
aten._cdist_backward: b s t, b s d, b t d, b s t -> b s d
aten._pdist_forward: s d -> s*(s-1)/2
aten.embedding: n d, b s -> b s d
aten.scatter_add: n d, b d, b d -> n d
aten.embedding_dense_backward: b s d, b s -> n d
aten._embedding_bag: n d, s, b -> b d, s
aten._embedding_bag_backward: b d, s, b -> n d
aten._embedding_bag_per_sample_weights_backward: b d, n d, s, b -> s
flex_lib.zeros_and_scatter: b s, b s, b s -> n d
aten.masked_scatter_backward: s, s -> t
aten.searchsorted: t, s -> s
aten.histc: s -> 10
aten.nonzero: s t -> n 2
aten._unique2: s -> n
aten.cumsum: b s -> b s
aten.segment_reduce: s, b -> b
aten.sort: b s -> b s, b s
aten._ctc_loss: t b n, b k -> b, b t 2*k+1
aten.avg_pool2d: b d s s -> b d s/2 s/2 | kernel_size=[2, 2]
prims._low_memory_max_pool_with_offsets: b d s s -> b d s/2 s/2 | kernel_size=[3]
aten.avg_pool2d_backward: b d s/2 s/2, b d s s -> b d s s | kernel_size=2
aten.max_pool2d_with_indices_backward: b d s/2 s/2, b d s s -> b d s s
aten.upsample_nearest2d: b d s s -> b d 2*s 2*s
aten.upsample_nearest2d_backward: b d 2*s 2*s -> b d s s
aten._upsample_nearest_exact2d: b d s s -> b d 2*s 2*s
aten._upsample_nearest_exact2d_backward: b d 2*s 2*s -> b d s s
aten.reflection_pad2d: b d s s -> b d s+2 s+2
aten.reflection_pad2d_backward: b d s+2 s+2, b d s s -> b d s s
aten.im2col: b d s s -> b 9*d s*s
aten.im2col_backward: b 9*d s*s -> b d s s
aten.upsample_linear1d: b d s -> b d 2*s
aten.upsample_linear1d_backward: b d 2*s -> b d s
aten.upsample_bilinear2d: b d s s -> b d 2*s 2*s
aten.upsample_bilinear2d_backward: b d 2*s 2*s -> b d s s
aten.upsample_trilinear3d: b d s s s -> b d 2*s 2*s 2*s
aten.upsample_trilinear3d_backward: b d 2*s 2*s 2*s -> b d s s s
aten.upsample_bicubic2d: b d s s -> b d 2*s 2*s
aten.upsample_bicubic2d_backward: b d 2*s 2*s -> b d s s
aten.grid_sampler_2d: b d s s, b t t 2 -> b d t t
aten.grid_sampler_2d_backward: b d t t, b d s s, b t t 2 -> b d s s, b t t 2
aten._fft_r2c: b s -> b s/2+1 | dim=[1]
aten._cudnn_rnn: t b d, 4*n d, 4*n n, 4*n, b n -> t b n
aten._cudnn_rnn_backward: t b d, 4*n d, 4*n n, 4*n, b n -> t b d
aten.unfold_backward: b s k -> b s
aten.div: b s, s -> b s
prims.div: b s, s -> b s
aten.exp: b s -> b s
prims.exp: b s -> b s
aten.pow: b s -> b s
aten.float_power: b s -> b s
prims.pow: b s -> b s
aten.var_mean: b s -> b, b
prims.var: b s -> b
aten.sum: b s -> b
prims.sum: b s -> b
aten.tanh: b s -> b s
prims.tanh: b s -> b s
aten.pow: b s -> b s
aten.float_power: b s -> b s
prims.erf: b s -> b s
aten.clone: b s -> b s
aten._foreach_tanh: s, t -> s, t
aten._foreach_erf: s, t -> s, t
aten.erf: b s -> b s
aten._foreach_pow: s, t -> s, t
prims.iota: -> s
aten.add.Tensor: b s, s -> b s
aten._foreach_add: s, t -> s, t
aten._foreach_div: s, t -> s, t
aten._foreach_exp: s, t -> s, t
aten._foreach_pow: s, t -> s, t
aten.native_dropout: b s -> b s, b s | train=True
aten.bernoulli: b s -> b s
aten.empty: -> b s
"""

Sample = tuple[str, list[str], list[str], Mapping[str, Any]]


def parse(line: str) -> Sample:
    operator, _, rest = line.partition(":")
    call, _, given = rest.partition("|")
    shapes_in, shapes_out = ([shape for shape in side.split(",") if shape.strip()] for side in call.split("->"))
    named = ast.parse(f"f({given})", mode="eval").body
    assert isinstance(named, ast.Call)
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in named.keywords}
    return operator if operator.count(".") > 1 else f"{operator}.default", shapes_in, shapes_out, arguments


LINES = [line for line in SAMPLES.splitlines() if line]


def work(sample: Sample, symbols: Mapping[str, Any]) -> Work:
    operator, shapes_in, shapes_out, arguments = sample

    def specs(shapes: list[str]) -> tuple[TensorSpec, ...]:
        sizes = (tuple(sympy.sympify(size, locals=dict(symbols)) for size in shape.split()) for shape in shapes)
        return tuple(TensorSpec(tuple(map(plain, shape)), "float32", 4) for shape in sizes)

    return work_of(operator, specs(shapes_in), specs(shapes_out), arguments=arguments)


def plain(size: Any) -> Any:
    return int(size) if size.is_Integer else size


@pytest.mark.parametrize("line", LINES, ids=[line.partition(":")[0] for line in LINES])
def test_a_formula_of_symbols_at_their_hints_is_the_formula_of_numbers(line: str) -> None:
    symbols = {name: sympy.Symbol(name, integer=True, positive=True) for name in HINTS}
    hints = {symbols[name]: hint for name, hint in HINTS.items()}

    symbolic = work(parse(line), symbols)
    concrete = work(parse(line), {name: sympy.Integer(hint) for name, hint in HINTS.items()})

    assert not symbolic.estimated
    found = evaluate(symbolic, hints)
    for quantity in ("matrix_flops", "elements", "random_numbers", "bytes_moved"):
        assert getattr(found, quantity) == pytest.approx(float(getattr(concrete, quantity)), rel=1e-12)
    assert (found.family, found.arithmetic, found.dtype) == (concrete.family, concrete.arithmetic, concrete.dtype)


def test_every_rule_has_a_symbolic_sample() -> None:
    sampled = {rule_of(parse(line)[0]) for line in LINES}
    missing = sorted(packet for packet, rule in RULES.items() if rule not in sampled)
    assert missing == []


def test_a_symbol_without_a_hint_is_named() -> None:
    size: Any = sympy.Symbol("s0", integer=True, positive=True)
    waiting = work_of(
        "aten.exp.default", (TensorSpec((size, 4), "float32", 4),), (TensorSpec((size, 4), "float32", 4),)
    )
    with pytest.raises(ValueError, match="no hint for the size s0"):
        evaluate(waiting, {})


def test_the_symbols_of_a_traced_graph_evaluate_at_the_sizes_it_was_traced_with() -> None:
    left, right = torch.randn(6, 10), torch.randn(10, 14)
    traced = make_fx(torch.mm, tracing_mode="symbolic")(left, right)
    (node,) = traced.graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)
    specs = [
        TensorSpec(tuple(size.node.expr for size in value.shape), "float32", 4)
        for value in (*(source.meta["val"] for source in node.args), node.meta["val"])
    ]

    symbolic = work_of("aten.mm.default", tuple(specs[:2]), tuple(specs[2:]))

    shapes = node.meta["val"].fake_mode.shape_env
    assert symbolic.matrix_flops.free_symbols  # type: ignore[attr-defined]  # an expression until it is evaluated
    assert evaluate(symbolic, shapes.backed_var_to_val).matrix_flops == 2 * 6 * 10 * 14
