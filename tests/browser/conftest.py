"""A headless Chromium. Without one these tests are left out, unless PARAPIPE_BROWSER=required."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

import parapipe
from benchmarks.chromium import WANTED, chromium, paths, view
from tests.cases.branchy import branchy


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    """A Chromium; where there is none, the test is left out, or fails if one is required."""
    if paths() is None:
        if os.environ.get("PARAPIPE_BROWSER") == "required":
            pytest.fail(WANTED)
        pytest.skip(WANTED)
    with chromium() as driver:
        yield driver


class Page:
    """A report in the browser."""

    def __init__(self, driver: webdriver.Chrome, path: Path, address: str, *, dark: bool) -> None:
        self.driver = driver
        view(driver, width=1280, height=900, dark=dark)
        driver.get("about:blank")
        for log in ("browser", "performance"):
            driver.get_log(log)  # of pages before this one
        driver.get(path.as_uri() + address)

    def run(self, script: str, *arguments: object):
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str):
        """Return elements."""
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        """Return the text of the first element."""
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements."""
        script = "return [...document.querySelectorAll(arguments[0])].map((it) => it.textContent)"
        return list(self.run(script, selector))

    def bars(self) -> list[tuple[float, float, float]]:
        """Top, left and right end of each bar of the schedules, in pixels."""
        return [(y, x, x + width) for x, y, width in self.run(
            "return [...document.querySelectorAll('#gantt .bar')].map((bar) =>"
            "['x', 'y', 'width'].map((key) => Number(bar.getAttribute(key))))"
        )]  # fmt: skip

    def key(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            webdriver.ActionChains(self.driver).send_keys(key).perform()

    def click(self, element, *, holding: str = "") -> None:
        """Click on an element where it is on top."""
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        actions = webdriver.ActionChains(self.driver)
        if holding:
            actions.key_down(holding)
        actions.move_to_element(element).click()
        if holding:
            actions.key_up(holding)
        actions.perform()

    @property
    def shown(self) -> list[str]:
        """Ids of the configurations whose schedules are shown."""
        return self.run("return [...document.querySelectorAll('#gantt [data-shows]')]"
                        ".map((each) => each.dataset.shows)")  # fmt: skip

    def console(self) -> list[str]:
        """What the browser complained of since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="session")
def six_processors(tmp_path_factory) -> parapipe.ParetoFront:
    """A front whose rows of interleaved frames use six processors over many periods."""
    folder = tmp_path_factory.mktemp("six")
    board = folder / "board.yaml"
    chip = parapipe.new_platform(chip="rk3588").text
    board.write_text(f"{chip}memory: lpddr5-128bit\n", encoding="utf-8")
    return parapipe.map(
        branchy(folder / "deep.onnx", joins=12), board, precision="float16", cache=False, jobs=1,
        note=lambda _: None, draws=50,
    )  # fmt: skip


@pytest.fixture
def opened(browser: webdriver.Chrome):
    """Open a report: `opened(path, "#c01", dark=True)`."""

    def open_page(path: Path, address: str = "", *, dark: bool = False) -> Page:
        return Page(browser, path, address, dark=dark)

    return open_page
