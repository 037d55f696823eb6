"""A small network, platforms for it, and files of tools."""

from pathlib import Path

import pytest

import parapipe
from tests.cases.small_network import saved

FILES = Path(__file__).with_name("files")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small network, and the board's platform file in an empty folder."""
    folder = tmp_path_factory.mktemp("imports")
    platform = folder / "board.yaml"
    parapipe.new_platform(chip="rk3588", name="board").write(platform)
    return saved(folder), platform


@pytest.fixture(scope="session")
def graph(small):
    return parapipe.load_model(small[0])


@pytest.fixture
def table(tmp_path):
    """Write a CSV table of layers."""

    def write(*rows: str, header: str = "name,processor,milliseconds") -> Path:
        path = tmp_path / "table.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write
