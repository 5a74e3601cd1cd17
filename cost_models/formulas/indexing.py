"""Operators that read or write at indices: gathers, scatters, sorts and scans.

A gather reads as many elements as it writes, whatever the size of its source. A scatter that is not in place copies its
base, then reads and writes the indexed elements.
"""

from __future__ import annotations

from dataclasses import replace

from autockpt.cost_models.formulas.rules import Call, nbytes, rule, vectors
from autockpt.cost_models.formulas.symbolic import largest, log2
from autockpt.cost_models.work import TensorSpec, Work


@rule("embedding index _unsafe_index _unsafe_masked_index gather index_select take masked_select embedding_renorm")
def gather(call: Call) -> Work:
    result = call.outputs[0]
    return call.vector("gather", result.numel, 2 * result.nbytes + nbytes(call.inputs[1:]))


@rule(
    "index_put _unsafe_index_put _unsafe_masked_index_put_accumulate scatter scatter_add scatter_reduce index_add "
    "index_copy index_fill index_reduce put masked_scatter _index_put_impl"
)
def scatter(call: Call) -> Work:
    """Operands are the base, then indices and updates; one update may be broadcast to many indices."""
    base, *rest = call.inputs
    touched = largest(*(spec.numel for spec in rest))
    return call.vector("scatter", touched, call.moved + 2 * touched * base.itemsize)


@rule("zeros_and_scatter", namespace="flex_lib")
def score_gradient(call: Call) -> Work:
    """The gradient of a tensor that FlexAttention's score function reads at indices: it adds one number for a score."""
    touched = largest(*(spec.numel for spec in call.inputs))
    return call.vector("scatter", touched, 2 * touched * call.inputs[0].itemsize)


@rule("embedding_dense_backward")
def embedding_backward(call: Call) -> Work:
    """Fills a table with zeros, then adds each row of the gradient to one of its rows."""
    gradient = call.inputs[0]
    return call.vector("scatter", gradient.numel, call.moved + 2 * gradient.nbytes)


@rule("_embedding_bag _embedding_bag_forward_only")
def embedding_bag(call: Call) -> Work:
    table, indices = call.inputs[:2]
    picked = indices.numel * table.shape[-1]
    return call.vector("gather", picked, picked * table.itemsize + nbytes((*call.inputs[1:], *call.outputs)))


@rule("_embedding_bag_backward _embedding_bag_dense_backward")
def embedding_bag_backward(call: Call) -> Work:
    gradient, indices = call.inputs[:2]
    added = indices.numel * gradient.shape[-1]
    return call.vector("scatter", added, call.moved + 2 * added * gradient.itemsize)


@rule("_embedding_bag_per_sample_weights_backward")
def embedding_bag_weights_backward(call: Call) -> Work:
    gradient, table, indices = call.inputs[:3]
    picked = indices.numel * table.shape[-1]
    return call.vector("gather", picked, gradient.nbytes + picked * table.itemsize + nbytes(call.inputs[2:]))


@rule("masked_scatter_backward")
def masked_scatter_backward(call: Call) -> Work:
    return call.vector("scan", call.inputs[0].numel)


@rule("bucketize searchsorted")
def search(call: Call) -> Work:
    """Binary search of each element among the boundaries."""
    boundaries = min(call.inputs, key=lambda spec: _is(spec, call.outputs[0]))
    found = call.outputs[0]
    return call.vector("gather", found.numel * log2(boundaries.shape[-1] if boundaries.shape else 2))


def _is(spec: TensorSpec, result: TensorSpec) -> bool:
    return spec.shape == result.shape


@rule("histc histogram bincount _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _histogramdd_bin_edges")
def histogram(call: Call) -> Work:
    return call.vector("scatter", call.inputs[0].numel if call.inputs else 0)


@rule("nonzero nonzero_static")
def nonzero(call: Call) -> Work:
    """Two passes over the input: one counts, one writes."""
    return call.vector("scan", call.inputs[0].numel, call.moved + call.inputs[0].nbytes)


@rule("_unique _unique2 unique_dim")
def unique(call: Call) -> Work:
    return call.vector("sort", call.inputs[0].numel)


# Sequential along one dimension: each element depends on the one before.
vectors("scan", "cumsum cumprod cummax cummin logcumsumexp _cummax_helper _cummin_helper unique_consecutive")
vectors("scan", "segment_reduce _segment_reduce_backward")
vectors("sort", "sort topk kthvalue median nanmedian mode argsort msort")


@rule("_ctc_loss _ctc_loss_backward _cudnn_ctc_loss")
def ctc(call: Call) -> Work:
    """At every time step three log-additions for each label and each blank between labels."""
    probabilities, targets = call.inputs[1:3] if "backward" in call.operator else call.inputs[:2]
    time, batch = (*probabilities.shape, 1)[:2]
    length = targets.shape[-1]
    work = call.vector("transcendental", 3 * time * batch * (2 * length + 1))
    return replace(work, elements=largest(work.elements, probabilities.numel))
