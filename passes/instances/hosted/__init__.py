"""Exact search of small instances whose saved results may wait on the host."""

from autockpt.passes.instances.hosted.instance import HostedInstance, hosted_instance
from autockpt.passes.instances.hosted.plan import hosted_plan_of
from autockpt.passes.instances.hosted.search import HostedRun, solve_hosted

__all__ = ["HostedInstance", "HostedRun", "hosted_instance", "hosted_plan_of", "solve_hosted"]
