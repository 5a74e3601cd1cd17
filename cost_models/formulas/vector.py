"""Operators that make one pass over their tensors, by the cost of an element's arithmetic.

The kinds follow what compilers emit: one instruction, a division or square root, one exponential, or a polynomial of a
math library; a reduction depends on the element before. Operators that torch tags as pointwise and that are not listed
here are cheap.
"""

from __future__ import annotations

from autockpt.cost_models.formulas.rules import Call, rule, vectors
from autockpt.cost_models.work import Work

_MULTIPLIED = 32
"""Inductor multiplies for whole exponents below this (torch._inductor.lowering.pow)."""

vectors("divide", "div true_divide floor_divide sqrt rsqrt reciprocal remainder fmod addcdiv hypot gcd lcm")
vectors("divide", "div sqrt rsqrt reciprocal remainder fmod hypot gcd cbrt", "prims")
vectors(
    "exponential",
    """
    exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 logsumexp xlogy logit
    sigmoid sigmoid_backward silu silu_backward softplus softplus_backward elu elu_backward celu selu mish mish_backward
    log_sigmoid_forward log_sigmoid_backward glu glu_backward binary_cross_entropy binary_cross_entropy_backward
    _softmax _softmax_backward_data _log_softmax _log_softmax_backward_data _safe_softmax _masked_softmax
    _masked_softmax_backward
    """,
)
vectors("exponential", "exp exp2 expm1 log log2 log10 log1p prepare_softmax_online", "prims")
vectors("hyperbolic", "tanh tanh_backward tan sinh cosh asinh acosh atanh")
vectors("hyperbolic", "tanh tan sinh cosh asinh acosh atanh", "prims")
vectors("power", "float_power")
vectors("power", "pow", "prims")
vectors("reduce", "sum nansum mean prod amax amin aminmax max min any all argmax argmin count_nonzero trace")
vectors("reduce", "sum prod amax amin xor_sum", "prims")
vectors(
    "transcendental",
    """
    sin cos asin acos atan atan2 sinc erf erfc erfinv angle polar
    gelu gelu_backward lgamma digamma polygamma mvlgamma igamma igammac i0 linalg_vector_norm norm
    _weight_norm_interface _weight_norm_interface_backward _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl
    _thnn_fused_gru_cell _thnn_fused_gru_cell_backward
    special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_erfcx special_i0e
    special_i1 special_i1e special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_spherical_bessel_j0 special_ndtri special_log_ndtr special_zeta special_entr special_xlog1py
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h
    special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
    """,
)
vectors(
    "transcendental",
    """
    sin cos asin acos atan atan2 erf erfc erfcx erf_inv lgamma digamma igamma
    igammac zeta ndtri bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 spherical_bessel_j0
    """,
    "prims",
)
vectors(
    "normalize",
    """
    var var_mean std std_mean native_layer_norm native_layer_norm_backward native_group_norm
    native_group_norm_backward _fused_rms_norm _fused_rms_norm_backward native_batch_norm native_batch_norm_backward
    _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
    _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional batch_norm_backward
    cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward
    """,
)
vectors("normalize", "var", "prims")
vectors(
    "cheap",
    """
    hash_tensor equal allclose
    clone copy _to_copy _copy_from lift_fresh_copy contiguous resize complex _conj_physical masked_fill fill zero where
    cat stack block_diag constant_pad_nd flip roll rot90 repeat repeat_interleave triu tril diag_embed isin renorm
    slice_scatter select_scatter as_strided_scatter diagonal_scatter slice_backward select_backward
    as_strided_copy view_copy slice_copy select_copy expand_copy permute_copy value_selecting_reduction_backward
    full full_like zeros zeros_like ones ones_like new_full new_zeros new_ones scalar_tensor arange linspace logspace
    eye tril_indices triu_indices lu_unpack _assert_async _functional_assert_async _linalg_check_errors
    native_dropout_backward _masked_scale _lazy_clone _reshape_copy _pin_memory _jagged_to_padded_dense_forward
    _padded_dense_to_jagged_forward
    adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
    _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d
    nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward mse_loss mse_loss_backward
    smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward
    """,
)
vectors(
    "cheap",
    """
    abs add sub mul fma neg sign signbit ceil floor round trunc eq ne lt le gt ge maximum minimum fmax fmin isfinite
    bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right_arithmetic shift_right_logical frexp nextafter
    conj_physical real imag where clone convert_element_type cat rev iota fill collapse reshape device_put copy_to
    copy_strided as_strided_scatter scalar_tensor inductor_seed inductor_seeds
    inductor_lookup_seed inductor_force_stride_order full full_like _low_memory_max_pool_offsets_to_indices
    """,
    "prims",
)


def _lists(arithmetic: str, names: str) -> None:
    """Register operators on lists of tensors."""
    rule(" ".join(f"_foreach_{name}" for name in names.split()))(
        lambda call: call.vector(arithmetic, sum(spec.numel for spec in call.outputs))
    )


_lists(
    "cheap",
    """
    abs add sub mul neg clone copy ceil floor round trunc frac sign maximum minimum max clamp_max clamp_min addcmul lerp
    powsum norm zero
    """,
)
_lists("divide", "div sqrt rsqrt reciprocal addcdiv")
_lists("exponential", "exp expm1 log log2 log10 log1p sigmoid")
_lists("hyperbolic", "tanh tan sinh cosh")
_lists("power", "pow")
_lists("transcendental", "sin cos asin acos atan erf erfc lgamma")


@rule("pow", arguments=True)
def power(call: Call) -> Work:
    """Inductor multiplies for small whole exponents and takes square roots for ±0.5."""
    exponent = call.arguments.get("exponent")
    if isinstance(exponent, int | float) and float(exponent).is_integer() and abs(exponent) < _MULTIPLIED:
        return call.vector("cheap" if exponent >= 0 else "divide")
    return call.vector("divide" if exponent in (0.5, -0.5) else "power")


@rule("native_dropout", arguments=True)
def dropout(call: Call) -> Work:
    if call.arguments.get("train") is False:
        return call.vector("cheap")
    return draw(call)


@rule("bernoulli rand randn rand_like randn_like randint randint_like randperm normal normal_functional uniform")
def draw(call: Call) -> Work:
    """One number for each element of the first result; a mask among the results is computed from the same numbers."""
    drawn = call.outputs[0].numel
    return Work(random_numbers=drawn, bytes_moved=call.moved, dtype=call.dtype)


rule("multinomial exponential geometric cauchy log_normal poisson binomial _standard_gamma _sample_dirichlet")(draw)
rule("rrelu_with_noise rrelu_with_noise_functional random _fused_dropout")(draw)
rule("inductor_random inductor_randint normal uniform _uniform_helper", "prims")(draw)
rule("philox_rand", "rngprims")(draw)


@rule("empty empty_like empty_strided empty_permuted new_empty new_empty_strided _efficientzerotensor")
@rule("_unsafe_view _reshape_alias")
def allocate(call: Call) -> Work:
    """Uninitialised memory; views whose schemas do not declare the alias."""
    return Work(dtype=call.dtype)


rule("empty empty_strided empty_permuted _make_token _sink_tokens", "prims")(allocate)
