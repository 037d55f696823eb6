"""Settings of all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cases.branchy import branchy

# No test measures time: a busy machine must not make one fail.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# A shell without job control starts what it puts in the background with interrupts ignored, nohup
# with hang-ups, and child processes inherit that: tests that send them would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _no_test_meets_the_users_cache(tmp_path_factory: pytest.TempPathFactory):
    """For fixtures that outlive a test, and for their child processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARAPIPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _no_test_meets_anothers_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all tests that ask for it have one cache, in whatever process of pytest they run.

    For the commands of documents, most of which map the same network on the same board.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    monkeypatch.setenv("PARAPIPE_CACHE", str(folder / "shared-cache"))


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in two rounds of very little time: nothing is said of how long they take."""
    from parapipe.profiling import measure

    for name, value in {"ROUNDS": 2, "MOST_ROUNDS": 2, "BATCH_S": 1e-5, "WARM_UP_S": 1e-5}.items():
        monkeypatch.setattr(measure, name, value)


@pytest.fixture(scope="session")
def branchy_front(tmp_path_factory: pytest.TempPathFactory):
    """The front of the small network on the A311D."""
    import parapipe

    path = branchy(tmp_path_factory.mktemp("model") / "branchy.onnx")
    return parapipe.map(path, "amlogic-a311d", cache=False, jobs=1, interleave="none")


SEGMENTS = """\
schema: parapipe/platform/1
name: with-segments
base: amlogic-a311d
processors:
  - {name: big, segments: {load_s: 0.002, source: guess}}
  - {name: little, segments: {load_s: 0.002, source: guess}}
  - {name: gpu, segments: {most: 3, load_s: 0.05, memory_bytes: 1000000, source: guess}}
sources:
  guess: {provenance: nominal, title: Made up for the tests}
"""


@pytest.fixture(scope="session")
def segment_front(tmp_path_factory: pytest.TempPathFactory):
    """The same on a board that says what segments cost."""
    import parapipe

    folder = tmp_path_factory.mktemp("segments")
    path, platform = branchy(folder / "branchy.onnx"), folder / "board.yaml"
    platform.write_text(SEGMENTS, encoding="utf-8")
    return parapipe.map(path, platform, cache=False, jobs=1, interleave="none")


@pytest.fixture(scope="session")
def branchy_folder(branchy_front, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the front was written to."""
    folder = tmp_path_factory.mktemp("front") / "out"
    branchy_front.write(folder)
    return folder
