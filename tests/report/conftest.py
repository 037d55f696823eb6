"""A small network with branches, mapped and written once for all tests of reports."""

from pathlib import Path

import pytest

from parapipe import api
from tests.report.branchy import branchy


@pytest.fixture(scope="session")
def branchy_front(tmp_path_factory: pytest.TempPathFactory):
    """The front of the small network on the A311D."""
    path = branchy(tmp_path_factory.mktemp("model") / "branchy.onnx")
    return api.map_model(path, "amlogic-a311d", cache=False, jobs=1)


@pytest.fixture(scope="session")
def branchy_folder(branchy_front, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the front was written to."""
    folder = tmp_path_factory.mktemp("front") / "out"
    branchy_front.write(folder)
    return folder
