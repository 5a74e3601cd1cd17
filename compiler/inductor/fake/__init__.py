"""Steps without memory and devices that are not here: fake tensors, a fake CUDA, a fake Triton driver."""
