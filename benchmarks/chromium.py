"""A headless Chromium to look at report pages with: its own profile, no network of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

NAMES = ("chromium", "chromium-browser", "google-chrome")
WANTED = (
    "Chromium and chromedriver are not installed (Debian: apt install chromium chromium-driver)"
)


def paths() -> tuple[str, str] | None:
    """Return those of the browser and its driver, if both are installed."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Start one that logs its console and everything it asks the network for."""
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    found = paths()
    if found is None:
        raise SystemExit(WANTED)
    options = Options()
    options.binary_location = found[0]
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
                         "hide-scrollbars", f"user-data-dir={profile}"):  # fmt: skip
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = Chrome(options=options, service=Service(found[1]))
        try:
            yield driver
        finally:
            driver.quit()


def view(driver: Chrome, *, width: int, height: int, dark: bool) -> None:
    """Give pages a size in pixels, and the system's wish for light or dark."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
