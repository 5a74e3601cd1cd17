"""A lower bound on recomputation and waiting that holds for every plan with copies, from one without.

At the boundary everything offloaded has left the device, all of its bytes, say B; what is left of the budget holds the
other saved bytes. With `least(b)` seconds of recomputation in any plan that saves b bytes, a plan with B on the host
recomputes for at least `least(slack + B)`. Copying out takes B / out_rate, of which the kernels of the forward cover at
most its own seconds, and copying in likewise, where recomputation covers more. So it takes at least

    max(least(slack + B), B / in_rate - backward seconds) + max(0, B / out_rate - forward seconds)

`least` is convex and falls, the other terms are convex and rise: the sum is convex in B, and its least value over whole
numbers of bytes is found by ternary search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autockpt.passes.forecast import HostLink
from autockpt.passes.intervals.copies import PassSpans


@dataclass(frozen=True)
class HostedBound:
    least_seconds: Callable[[float], float]
    """Of recomputation in any plan without copies that saves so many bytes; convex, infinite below some."""
    link: HostLink
    spans: PassSpans
    most_bytes: int
    """That may be offloaded."""

    def seconds(self, slack_bytes: int) -> float:
        """For any plan with so many bytes on the device at the boundary; infinite where there is none."""
        if slack_bytes < 0:
            return float("inf")
        low, high = 0, self.most_bytes
        while high - low > 2:
            third = (high - low) // 3
            if self._with(slack_bytes, low + third) <= self._with(slack_bytes, high - third):
                high -= third
            else:
                low += third
        return min(self._with(slack_bytes, host_bytes) for host_bytes in range(low, high + 1))

    def _with(self, slack_bytes: int, host_bytes: int) -> float:
        recomputed = self.least_seconds(slack_bytes + host_bytes)
        copied_in = host_bytes / self.link.in_bytes_per_second - self.spans.backward
        copied_out = host_bytes / self.link.out_bytes_per_second - self.spans.forward
        return max(recomputed, copied_in) + max(copied_out, 0.0)
