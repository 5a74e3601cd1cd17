"""Workspaces of GPU kernels, as torch's source computes them."""

from __future__ import annotations

import pytest

from autockpt.cost_models import TensorSpec
from autockpt.cost_models.memory.workspace_cuda import cublas_bytes, cuda_workspace_bytes

MIB = 2**20


def attention(operator: str, heads: int, key_heads: int, dtype: str, itemsize: int) -> int:
    query = TensorSpec((1, heads, 4096, 128), dtype, itemsize)
    key = TensorSpec((1, key_heads, 4096, 128), dtype, itemsize)
    return cuda_workspace_bytes(f"aten._scaled_dot_product_{operator}_backward.default", (query, query, key, key))


def test_flash_attention_accumulates_the_query_gradient_in_float32() -> None:
    assert attention("flash_attention", 32, 32, "bfloat16", 2) == 64 * MIB + 32 * 4096 * 4


def test_heads_that_share_keys_have_separate_gradients_first() -> None:
    alone, shared = (attention("flash_attention", 32, heads, "bfloat16", 2) for heads in (32, 8))
    assert shared - alone == 2 * 32 * MIB


def test_efficient_attention_accumulates_in_tiles() -> None:
    assert attention("efficient_attention", 32, 32, "float32", 4) == 64 * MIB + 32 * 4096 * 4


def test_operators_without_a_rule_have_no_workspace() -> None:
    assert cuda_workspace_bytes("aten.convolution_backward.default", ()) == 0


@pytest.mark.parametrize(
    ("capability", "config", "nbytes"),
    [
        pytest.param((8, 0), None, 8 * MIB + 128 * 1024, id="A100"),
        pytest.param((9, 0), None, 32 * MIB, id="H100"),
        pytest.param((9, 0), ":4096:8", 32 * MIB, id="as deterministic algorithms want it"),
        pytest.param((9, 0), ":16:8", 128 * 1024, id="or slower"),
        pytest.param((8, 0), "nonsense", 8 * MIB + 128 * 1024, id="not understood"),
    ],
)
def test_cublas_has_one_workspace(capability: tuple[int, int], config: str | None, nbytes: int) -> None:
    assert cublas_bytes(capability, config) == nbytes
