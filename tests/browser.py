"""Headless Chromium without a network. Tests that need it are skipped where it is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A driver that records the console of the page."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield started
    finally:
        started.quit()


def visit(driver: Any, path: Path) -> None:
    """Open a file and wait until its scripts have run; on a busy machine the driver returns earlier."""
    driver.get(path.as_uri())
    wait(driver, lambda: driver.execute_script("return document.readyState") == "complete")


def wait(driver: Any, condition: Callable[[], bool]) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(driver, 30, 0.05).until(lambda _: condition())


def resize(driver: Any, width: int, height: int) -> None:
    """The page's viewport, which may be narrower than a window can be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(driver: Any, scheme: str) -> None:
    """Emulate the system's colour scheme, light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
