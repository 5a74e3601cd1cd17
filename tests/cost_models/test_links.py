"""Collectives priced from a link model, and the links of shipped profiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autockpt.cost_models import DeviceProfile, RankGroup, Transfer, Work, load_profile, seconds_of
from autockpt.cost_models.device import Link
from autockpt.cost_models.links import link_of, transfer_seconds
from autockpt.cost_models.profiles import ProfileError, profile_json, read_profile

NODE, NETWORK = Link(8, 100e9, 1e-6), Link(0, 10e9, 10e-6)
GROUP = RankGroup(8, 0, 7)
MB = 10**6


@pytest.fixture
def device() -> DeviceProfile:
    return replace(load_profile("h100"), links=(NODE, NETWORK), launch_seconds=5e-6)


def test_an_all_reduce_is_a_scatter_and_a_gather(device: DeviceProfile) -> None:
    seconds = {
        kind: transfer_seconds(Transfer(kind, 80 * MB, GROUP), device) - device.launch_seconds
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    }
    assert seconds["all_gather"] == pytest.approx(7 / 8 * 80 * MB / 100e9 + 3 * 1e-6)
    assert seconds["reduce_scatter"] == seconds["all_to_all"] == seconds["all_gather"]
    assert seconds["all_reduce"] == pytest.approx(2 * seconds["all_gather"])


def test_a_broadcast_passes_the_link_once(device: DeviceProfile) -> None:
    assert transfer_seconds(Transfer("broadcast", 100 * MB, GROUP), device) == pytest.approx(5e-6 + 1e-3 + 3e-6)


def test_a_small_message_costs_its_latency(device: DeviceProfile) -> None:
    assert transfer_seconds(Transfer("all_reduce", 8, GROUP), device) == pytest.approx(5e-6 + 6e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("group", "link"),
    [
        (RankGroup(8, 0, 7), NODE),
        (RankGroup(4, 12, 15), NODE),
        (RankGroup(2, 7, 8), NETWORK),
        (RankGroup(8, 0, 56), NETWORK),
        (RankGroup(64, 0, 63), NETWORK),
    ],
)
def test_a_group_that_leaves_its_node_runs_at_the_rate_of_the_network(
    device: DeviceProfile, group: RankGroup, link: Link
) -> None:
    assert link_of(group, device) == link


def test_launch_and_wait_are_one_cost(device: DeviceProfile) -> None:
    assert transfer_seconds(Transfer("wait", 80 * MB, GROUP), device) == 0.0
    transfer = Transfer("all_gather", 80 * MB, GROUP)
    assert seconds_of(Work(transfer=transfer, bytes_moved=1e15), device) == transfer_seconds(transfer, device)


def test_a_group_of_one_only_launches(device: DeviceProfile) -> None:
    assert transfer_seconds(Transfer("all_reduce", 80 * MB, RankGroup(1, 3, 3)), device) == device.launch_seconds


def test_without_links_collectives_go_over_the_host(device: DeviceProfile) -> None:
    assert link_of(GROUP, replace(device, links=())).bytes_per_second == device.host_bytes_per_second


@pytest.mark.parametrize("name", ["v100", "a100-40gb", "a100-80gb", "h100-sxm", "h200", "b200", "mi300x"])
def test_shipped_links_go_from_the_node_to_the_network_and_name_their_source(name: str) -> None:
    profile = load_profile(name)
    inside, network = profile.links
    assert (inside.ranks, network.ranks) == (8, 0)
    assert inside.bytes_per_second > network.bytes_per_second
    assert inside.latency_seconds < network.latency_seconds
    assert "Links: " in profile.source


def test_links_are_stored_in_profiles_and_checked(tmp_path: Path, device: DeviceProfile) -> None:
    path = tmp_path / "device.json"
    path.write_text(profile_json(device))
    assert read_profile(path) == device
    path.write_text(profile_json(device).replace("10000000000.0", "-1.0"))
    with pytest.raises(ProfileError, match="links"):
        read_profile(path)
