"""The runner with oneDNN and XNNPACK, built as for `parapipe run`, by `make test-native`."""

import os
import subprocess
from fcntl import LOCK_EX, flock
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
                reason = "needs a compiler, oneDNN and XNNPACK: make test-native"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _one_build(monkeypatch):
    monkeypatch.setenv("PARAPIPE_CACHE", os.environ[BUILD])


@pytest.fixture
def runner():
    """The runner, built once for all tests."""
    return Runner((str(built_runner("onednn", "xnnpack")),), ())


@pytest.fixture(scope="session")
def decisions():
    """What replays strategies on a simulated clock, under sanitizers."""
    source, folder = "runtimes/native", Path(os.environ[BUILD]).absolute() / "decisions"
    folder.mkdir(parents=True, exist_ok=True)
    switches = (
        "DECISIONS=ON",
        "NEON=OFF",
        "ONEDNN=OFF",
        "XNNPACK=OFF",
        "SANITIZE=address,undefined",
    )
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        for words in (
            ["-S", source, "-B", str(folder), *(f"-DPARAPIPE_{each}" for each in switches)],
            ["--build", str(folder), "--target", "parapipe-native-decisions"],
        ):
            done = subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    return str(folder / "parapipe-native-decisions")
