"""The runner with oneDNN, built as for `parapipe run`, where `make test-native` runs."""

import os
from pathlib import Path

import pytest

from parapipe.targets.native.runner import built_runner
from tests.cases.runner import Runner
from tests.cli.conftest import parapipe  # noqa: F401 - a fixture

BUILD = "PARAPIPE_NATIVE_BUILD"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.native)
            if not os.environ.get(BUILD):
                reason = "needs a compiler and oneDNN: make test-native"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _one_build(monkeypatch):
    monkeypatch.setenv("PARAPIPE_CACHE", os.environ[BUILD])


@pytest.fixture
def runner():
    """The runner, built once for all tests."""
    return Runner((str(built_runner("onednn")),), ())
