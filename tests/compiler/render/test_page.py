"""The page of an analysis: safe with untrusted strings, reproducible, usable in a real browser without a network."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, prefer, resize, visit, wait
from report_sample import offloaded_report, sample_report

from autockpt.errors import AutockptError
from autockpt.passes.forecast import Content
from autockpt.render.page import page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
CHOSEN_BY_US = ("kinds", "kind", "pass", "decision")
Show = Callable[[dict[str, Any]], Any]


def hostile(value: Any, key: str = "") -> Any:
    """Every text that comes from the code of the model, with a script inside."""
    if isinstance(value, dict):
        return {name: hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner, key) for inner in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and key not in CHOSEN_BY_US else value


def test_the_same_report_gives_the_same_page() -> None:
    assert page(sample_report()) == page(sample_report())


def test_no_text_of_a_report_becomes_a_tag() -> None:
    plain, attacked = page(sample_report()), page(hostile(sample_report()))

    assert HOSTILE not in attacked
    assert "<script>alert" not in attacked
    assert "<img src=x" not in attacked
    assert attacked.count("<script") == plain.count("<script")


def test_every_kind_of_memory_has_a_colour_in_both_themes() -> None:
    style = page(sample_report()).partition("<style>")[2].partition("</style>")[0]
    kinds = [*(content.value for content in Content), "recomputed", "optimizer state"]
    kinds += ["gathered parameters", "communication buffers", "between graphs"]

    for kind in kinds:
        assert style.count(f"--kind-{kind.replace(' ', '-')}: #") == 2, kind


def test_an_infinite_bound_does_not_break_the_json() -> None:
    report = sample_report()
    report["graphs"][0]["gap"]["every_plan_bound_seconds"] = float("inf")

    assert '"every_plan_bound_seconds":null' in page(report)


def test_without_plotly_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)

    with pytest.raises(AutockptError, match=r"pip install 'autockpt\[html\]'"):
        page(sample_report())


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One path for all pages, because the browser caches the compiled script of an address."""
    return tmp_path_factory.mktemp("page") / "report.html"


@pytest.fixture
def show(driver: Any, path: Path) -> Iterator[Show]:
    """Open the page of a report as a file. Whatever is done there, the console is silent and nothing is fetched."""

    def open_page(report: dict[str, Any]) -> Any:
        path.write_text(page(report), encoding="utf-8")
        visit(driver, path)
        return driver

    resize(driver, 1280, 900)
    prefer(driver, "light")
    yield open_page
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)") == []


@pytest.fixture
def sample(driver: Any, path: Path, show: Show) -> Any:
    """The sample's page, opened once for all tests that leave it as they found it."""
    if not path.exists() or path.read_text(encoding="utf-8") != page(sample_report()):
        show(sample_report())
    return driver


def texts(driver: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
    found: list[str] = driver.execute_script(script, selector)
    return found


def text(driver: Any, selector: str) -> str:
    return " ".join(texts(driver, selector))


def find(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def type_into(driver: Any, selector: str, words: str) -> None:
    find(driver, selector).send_keys(words)


def point_at(driver: Any, selector: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(driver, selector))
    ActionChains(driver).move_to_element(find(driver, selector)).perform()


def colours(driver: Any) -> list[str]:
    """Of the page, its text, and the plots' words."""
    script = "const style = (one) => getComputedStyle(document.querySelector(one));"
    script += "return [style('body').backgroundColor, style('body').color, style('#timeline .xtick text').fill]"
    found: list[str] = driver.execute_script(script)
    return found


@pytest.mark.browser
def test_the_verdict_and_the_figures_are_there(sample: Any) -> None:
    assert text(sample, "#verdict").startswith("Fits3.77 GiB of 4.00 GiB, +2.3% step time")
    assert texts(sample, "#figures dt")[:4] == ["Peak", "Budget", "Minimum peak", "Fastest"]
    assert "flash attention" in text(sample, "#notes")
    assert "aten.embedding_dense_backward.default" in text(sample, "#notes")
    assert "print()" in text(sample, "#breaks-card")
    assert texts(sample, "#what-if tbody tr td:first-child") == ["batch x2", "batch /2", "seq x2", "seq /2"]
    assert "largest batch that fits is 35" in text(sample, "#max-batch")


@pytest.mark.browser
def test_both_plots_are_drawn(sample: Any) -> None:
    assert len(sample.find_elements("css selector", "#frontier .scatterlayer .point")) == 8 + 5
    assert "checkpoint every block" in text(sample, "#frontier .textpoint")
    assert "budget 4.00 GiB" in text(sample, "#frontier .annotation-text")
    # Optimizer state and the nine kinds; one more trace is for the pointer.
    assert len(sample.find_elements("css selector", "#timeline .fills path.js-fill")) == 10
    assert "peak 3.77 GiB" in text(sample, "#timeline .annotation-text")


@pytest.mark.browser
def test_the_axis_is_time_or_launches(sample: Any) -> None:
    find(sample, "[data-axis=time]").click()

    assert text(sample, "#timeline .xtitle") == "time (ms)"
    find(sample, "[data-axis=launch]").click()
    assert text(sample, "#timeline .xtitle") == "kernel launch"


@pytest.mark.browser
def test_pointer_and_keys_show_the_whole_tensor(sample: Any) -> None:
    assert not find(sample, "#inspector").is_displayed()

    point_at(sample, "#tensors tbody tr:nth-child(3)")
    assert text(sample, "#inspector h3") == "gelu_0"
    assert "268,435,456 bytes" in text(sample, "#inspector")
    assert "launch 8 to 9, then launch 32 to 33" in text(sample, "#inspector")
    assert "cheap to recompute" in text(sample, "#inspector")
    type_into(sample, "#tensors tbody tr", "\ue015")  # the arrow down
    assert text(sample, "#inspector h3") == "mm_2"
    type_into(sample, "#tensors tbody tr:nth-child(2)", "\ue00c")  # Escape
    assert not find(sample, "#inspector").is_displayed()


@pytest.mark.browser
def test_the_timeline_shows_the_launch_under_the_pointer(sample: Any) -> None:
    launches = sample_report()["graphs"][0]["timeline"]["launches"]
    point_at(sample, "#timeline")

    name = text(sample, "#inspector h3")
    assert name in {launch["operation"] for launch in launches[18:23]}
    assert name in text(sample, "#timeline .hoverlayer")
    assert "optimizer state" in text(sample, "#inspector")


@pytest.mark.browser
def test_the_theme_follows_the_system_until_the_button_says_otherwise(sample: Any) -> None:
    light = colours(sample)
    prefer(sample, "dark")
    wait(sample, lambda: all(one != other for one, other in zip(light, colours(sample), strict=True)))

    find(sample, "#theme").click()
    assert colours(sample) == light
    prefer(sample, "light")
    prefer(sample, "dark")
    assert colours(sample) == light


@pytest.mark.browser
def test_a_phone_scrolls_tables_and_not_the_page(sample: Any) -> None:
    resize(sample, 390, 844)
    # The plot is redrawn for its new width, with letters for the names that do not fit.
    wait(sample, lambda: "\u00a0A\u00a0" in texts(sample, "#frontier .textpoint"))

    wide = "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
    assert sample.execute_script(wide) == 0


@pytest.mark.browser
def test_a_click_on_a_heading_sorts_and_another_reverses_the_order(show: Show) -> None:
    driver = show(sample_report())
    names = {one["name"]: one["bytes"] for one in sample_report()["graphs"][0]["tensors"]}

    def sizes() -> list[int]:
        return [names[name] for name in texts(driver, "#tensors td.name")]

    assert sizes() == sorted(names.values(), reverse=True)
    find(driver, "[data-column=size] button").click()
    assert sizes() == sorted(names.values())
    assert find(driver, "[data-column=size]").get_attribute("aria-sort") == "ascending"
    type_into(driver, "[data-column=tensor] button", "\ue007")  # the Enter key
    assert texts(driver, "#tensors td.name") == sorted(names)
    assert find(driver, "[data-column=size]").get_attribute("aria-sort") is None


@pytest.mark.browser
def test_words_and_decisions_filter_and_the_matches_are_counted(show: Show) -> None:
    driver = show(sample_report())
    assert text(driver, "#shown") == "21 of 21 tensors, 2.63 GiB"

    type_into(driver, "#filter", "BLOCKS.1 mlp")
    assert set(texts(driver, "#tensors td.module")) == {"blocks.1", "blocks.1.up", "blocks.1.norm_mlp"}
    type_into(driver, "#decision", "recomputed")
    assert texts(driver, "#tensors td.name") == ["gelu_6", "native_layer_norm_7"]
    assert text(driver, "#shown") == "2 of 21 tensors, 320.0 MiB"


@pytest.mark.browser
def test_ten_thousand_tensors_come_two_hundred_at_a_time(show: Show) -> None:
    report = sample_report()
    first = report["graphs"][0]["tensors"][0]
    report["graphs"][0]["tensors"] = [{**first, "name": f"view_{number}", "bytes": number} for number in range(10_000)]
    driver = show(report)

    assert len(texts(driver, "#tensors td.name")) == 200
    find(driver, "#more").click()
    assert len(texts(driver, "#tensors td.name")) == 400
    type_into(driver, "#filter", "view_1234")
    assert texts(driver, "#tensors td.name") == ["view_1234"]


@pytest.mark.browser
def test_another_graph_brings_its_own_tensors(show: Show) -> None:
    report = sample_report()
    second = deepcopy(report["graphs"][0])
    second["name"], second["tensors"] = "graph 1", second["tensors"][:2]
    report["graphs"].append(second)
    report["frontier"] = []
    driver = show(report)

    type_into(driver, "#graph", "graph 1")
    assert len(texts(driver, "#tensors td.name")) == 2
    assert texts(driver, "#plans tbody td:first-child")[0] == "chosen"


@pytest.mark.browser
def test_what_does_not_fit_says_so(show: Show) -> None:
    driver = show({**sample_report(), "fits": False, "outcome": "over_budget", "what_if": [], "max_batch": None})

    assert text(driver, "#verdict").startswith("Does not fit")
    assert not find(driver, "#what-if-card").is_displayed()


@pytest.mark.browser
def test_a_search_for_the_largest_batch_that_stopped_early_says_why(show: Show) -> None:
    stopped = {"batch": 4096, "peak_bytes": 2**30, "next_bytes": None, "stopped": "memory does not grow with the batch"}
    driver = show({**sample_report(), "max_batch": stopped})

    assert text(driver, "#max-batch").endswith("is 4096, with a peak of 1.00 GiB; memory does not grow with the batch.")


@pytest.mark.browser
def test_a_baseline_that_is_faster_than_our_fastest_says_so(show: Show) -> None:
    report = sample_report()
    report["baselines"] = [{**report["baselines"][0], "step_seconds": 0.9 * report["fastest_seconds"]}]
    driver = show(report)

    assert texts(driver, "#plans tbody tr:last-child td")[3] == "-10.0%"


@pytest.mark.browser
def test_hostile_text_is_shown_as_text(show: Show) -> None:
    driver = show(hostile(sample_report()))
    point_at(driver, "#tensors tbody tr")

    assert HOSTILE in text(driver, "#inspector pre")
    assert HOSTILE in text(driver, "#timeline-lead, #peak-lead")
    assert driver.find_elements("css selector", "img[src=x]") == []


def test_what_waits_on_the_host_has_a_colour_and_the_link_a_row_for_each_direction(driver: Any, show: Show) -> None:
    show(sample_report())
    without = shapes(driver)
    show(offloaded_report())
    assert shapes(driver) == without + 2
    assert "64.0 MiB128.0 MiB moved, the step waits 200.0 µs" in text(driver, "#figures")
    assert "offloaded (1)" in text(driver, "#decision")
    script = "return [...document.querySelectorAll('#tensors .chip')].find((one) => one.textContent === 'offloaded')"
    style = driver.execute_script(f"{script}.firstChild.getAttribute('style')")
    assert "--kind-offloaded" in style


def shapes(driver: Any) -> int:
    return len(driver.find_elements("css selector", "#timeline .shapelayer path"))
