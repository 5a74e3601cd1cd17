"""Shipped device profiles are valid; an invalid one is refused with one sentence that names the file and the field."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autockpt.cost_models import ProfileError, load_profile, shipped_profiles
from autockpt.cost_models.profiles import profile_json, read_profile

PROFILE: dict[str, Any] = {
    "schema": 4,
    "name": "mine",
    "source": "made up",
    "kind": "cpu",
    "memory_bytes": 0,
    "matrix_flops_per_second": {"float32": 1e12},
    "vector_flops_per_second": 1e11,
    "random_numbers_per_second": 1e9,
    "bytes_per_second": 1e10,
    "launch_seconds": 0,
    "host_bytes_per_second": 1e10,
}


def write(folder: Path, text: str) -> str:
    path = folder / "mine.json"
    path.write_text(text)
    return str(path)


def refusal(name_or_path: str) -> str:
    with pytest.raises(ProfileError) as refused:
        load_profile(name_or_path)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_shipped_profile_has_its_name_a_source_and_positive_rates(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.source
    assert min(profile.matrix_flops_per_second.values()) > 0
    assert profile.vector_flops_per_second > 0
    assert profile.random_numbers_per_second > 0
    assert profile.bytes_per_second > 0
    assert profile.launch_seconds > 0


def test_the_documented_devices_are_shipped() -> None:
    documented = "t4 v100 a10 l4 l40s rtx-3090 rtx-4090 a100-40gb a100-80gb h100-sxm h100-pcie h200 gh200 b200"
    assert {*documented.split(), "mi300x", "cpu"} == set(shipped_profiles())


@pytest.mark.parametrize("name", [name for name in shipped_profiles() if name != "cpu"])
def test_a_data_sheet_is_named_and_estimates_are_called_so(name: str) -> None:
    source = load_profile(name).source
    assert "data sheet" in source or "white paper" in source
    assert "Estimates" in source


@pytest.mark.parametrize("name", [name for name in shipped_profiles() if name != "cpu"])
def test_small_products_are_slower_than_large_ones(name: str) -> None:
    profile = load_profile(name)
    assert profile.matrix_rate("float16", "matmul", 1e7) < profile.matrix_rate("float16", "matmul", 1e12) / 2


def test_the_profiles_that_the_backend_falls_back_to_are_shipped() -> None:
    assert {"cpu", "a100-80gb"} <= set(shipped_profiles())


def test_a_profile_is_loaded_by_its_path(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, json.dumps(PROFILE)))
    assert profile.name == "mine"
    assert profile.matrix_rate("float32") == 1e12


@pytest.mark.parametrize("field", [field for field in PROFILE if field != "schema"])
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    path = write(tmp_path, json.dumps({name: value for name, value in PROFILE.items() if name != field}))
    message = refusal(path)
    assert field in message
    assert path in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("bytes_per_seccond", 1e10, id="unknown field"),
        pytest.param("name", 5, id="name is a number"),
        pytest.param("source", None, id="source is null"),
        pytest.param("memory_bytes", "80GiB", id="bytes as text"),
        pytest.param("memory_bytes", -1, id="negative bytes"),
        pytest.param("bytes_per_second", "fast", id="rate as text"),
        pytest.param("bytes_per_second", None, id="rate is null"),
        pytest.param("bytes_per_second", True, id="rate is a boolean"),
        pytest.param("bytes_per_second", -1e10, id="negative rate"),
        pytest.param("vector_flops_per_second", 0, id="rate of zero"),
        pytest.param("random_numbers_per_second", float("nan"), id="rate is NaN"),
        pytest.param("vector_flops_per_second", float("inf"), id="rate is infinite"),
        pytest.param("launch_seconds", -1e-6, id="negative launch"),
        pytest.param("matrix_flops_per_second", 1e12, id="one rate for every dtype"),
        pytest.param("matrix_flops_per_second", {"bfloat16": 1e12}, id="no float32"),
        pytest.param("kind", "tpu", id="unknown kind"),
        pytest.param("efficiency", [[1e-3, 0.5]], id="one curve for every family"),
        pytest.param("efficiency", {"matmull": [[1e-3, 0.5]]}, id="unknown family"),
        pytest.param("efficiency", {"matmul": [[1e-3, -0.5]]}, id="negative share"),
        pytest.param("efficiency", {"matmul": [[1e-3]]}, id="half a point"),
        pytest.param("efficiency", {"matmul.bfloat16": [[1e-2, 0.5], [1e-3, 0.5]]}, id="decreasing x"),
        pytest.param("bandwidth", {"1024": 1e9}, id="a curve that is no list"),
        pytest.param("bandwidth", [[0, 1e9]], id="bandwidth of no bytes"),
        pytest.param("vector_weights", {"sine": 3.0}, id="unknown arithmetic"),
        pytest.param("vector_weights", {"cheap": 0.0}, id="free arithmetic"),
        pytest.param("fresh_above_bytes", -1, id="negative threshold"),
        pytest.param("fresh_bytes_per_second", "slow", id="fresh rate as text"),
        pytest.param("calibration", "good", id="calibration as text"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, field: str, value: Any) -> None:
    path = write(tmp_path, json.dumps({**PROFILE, field: value}))
    message = refusal(path)
    assert field in message
    assert path in message


def test_a_profile_is_equal_after_writing_and_reading(tmp_path: Path) -> None:
    profile = replace(load_profile("a100-80gb"), fresh_above_bytes=2**25, fresh_bytes_per_second=3e9)
    assert load_profile(write(tmp_path, profile_json(profile))) == profile


def test_the_curve_of_a_dtype_takes_precedence_over_its_family(tmp_path: Path) -> None:
    curves = {"matmul": [[1e-3, 0.5]], "matmul.bfloat16": [[1e-3, 0.25]]}
    profile = load_profile(write(tmp_path, json.dumps({**PROFILE, "efficiency": curves})))
    assert profile.matrix_rate("float32") == 5e11
    assert profile.matrix_rate("bfloat16") == 2.5e11
    assert profile.matrix_rate("float32", "attention") == 1e12


@pytest.mark.parametrize("rate", ["fast", -1.0, None])
def test_a_wrong_rate_is_named_by_its_dtype(tmp_path: Path, rate: Any) -> None:
    rates = {"float32": 1e12, "bfloat16": rate}
    path = write(tmp_path, json.dumps({**PROFILE, "matrix_flops_per_second": rates}))
    message = refusal(path)
    assert "bfloat16" in message
    assert path in message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(json.dumps(PROFILE)[:-20], "not valid JSON", id="truncated"),
        pytest.param("", "not valid JSON", id="empty"),
        pytest.param(json.dumps([PROFILE]), "must be an object", id="a list"),
        pytest.param("null", "must be an object", id="null"),
        pytest.param(json.dumps({**PROFILE, "schema": 5}), "update autockpt", id="a future schema"),
        pytest.param(
            json.dumps({name: value for name, value in PROFILE.items() if name != "schema"}),
            "`schema` 4",
            id="no schema",
        ),
    ],
)
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, text: str, why: str) -> None:
    path = write(tmp_path, text)
    message = refusal(path)
    assert why in message
    assert path in message


def test_a_profile_of_schema_2_is_read_without_its_retired_field(tmp_path: Path) -> None:
    older = {**PROFILE, "schema": 2, "allocator_rounding_bytes": 64}
    assert load_profile(write(tmp_path, json.dumps(older))) == load_profile(write(tmp_path, json.dumps(PROFILE)))


def test_a_profile_of_schema_1_is_refused(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, json.dumps({**PROFILE, "schema": 1})))
    assert "not 1" in message
    assert "autockpt calibrate" in message


def test_a_retired_field_is_unknown_to_the_newest_schema(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({**PROFILE, "allocator_rounding_bytes": 64}))
    assert "allocator_rounding_bytes" in refusal(path)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert str(path) in refusal(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere.json")
    assert path in refusal(path)


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(str(tmp_path))


def test_the_refusal_of_an_unknown_name_lists_the_shipped_ones() -> None:
    message = refusal("abacus")
    assert "'abacus'" in message
    assert all(name in message for name in shipped_profiles())


DEEP = '{"schema": 4, "name": ' + "[" * 900 + "]" * 900 + "}"


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, DEEP])
def test_a_deeply_nested_file_is_one_short_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text(content)
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    assert len(str(caught.value)) < 600 + len(str(path))
    assert "\n" not in str(caught.value)


def test_long_values_are_cut_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"schema": "x" * 10_000}))
    for make in (lambda: read_profile(path), lambda: load_profile("x" * 10_000)):
        with pytest.raises(ProfileError) as caught:
            make()
        assert len(str(caught.value)) < 600 + len(str(path))
