"""Copies between device and host beside the kernels of a plan: when they run, what they free, how long a step waits."""
