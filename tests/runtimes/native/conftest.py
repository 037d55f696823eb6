"""The runner as `make test-armcl` has built it; where it has not, its tests are skipped."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cases.runner import Runner

BUILD = "PARAPIPE_ARMCL_BUILD"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    built = os.environ.get(BUILD)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.armcl)
            if not built:
                reason = "needs a cross compiler, the library and an emulator: make test-armcl"
                item.add_marker(pytest.mark.skip(reason=reason))


def _built(build, emulator=()):
    folder = Path(os.environ[BUILD]).absolute() / build
    programs = [folder / name for name in ("parapipe-native", "parapipe-native-fuzz")]
    assert all(program.exists() for program in programs), f"{folder} is not built: make test-armcl"
    return Runner(*((*emulator, str(program)) for program in programs))


@pytest.fixture(scope="session")
def arm():
    """The runner with the library, under emulation unless this machine is one for it."""
    native = os.uname().machine == "aarch64"
    emulator = () if native else (shutil.which("qemu-aarch64-static"),)
    assert native or emulator[0], "qemu-aarch64-static is missing: make test-armcl"
    return _built("arm64", emulator)


@pytest.fixture(scope="session")
def stub():
    """The runner with a stub in the library's place, under sanitizers."""
    return _built("native")
