"""A browser without a screen."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome


def _chromium() -> tuple[str, str] | None:
    """Return where the browser and its driver are, if both are installed."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Start a browser; without one the tests are skipped, but not where CI is set."""
    found = _chromium()
    if found is None:
        miss = pytest.fail if os.environ.get("CI") else pytest.skip
        miss("chromium and chromium-driver are not installed")
    from selenium import webdriver  # noqa: PLC0415  it takes a while

    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for switch in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(f"--{switch}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(found[1]))
    driver.get("about:blank")  # the browser's first page goes on loading for a while
    yield driver
    driver.quit()
