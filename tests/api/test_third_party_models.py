"""Third parties' networks on six processors: each maps, and each plan is sound and runs."""

import sys
from dataclasses import asdict
from importlib.util import find_spec

import onnx
import pytest

import parapipe
from parapipe.export.onnxruntime.folder import write_session_folder
from tests.cases.session_runs import assert_equal, frame, run_in_turn, run_whole
from tests.cases.third_party_models import NAMES, structure, with_random_weights
from tests.search.test_anytime import Work, nightly, with_work

WORK = 40  # looks at the clock and problems solved, as a budget
BUDGET, MORE = 2_000_000, 2_000_000  # calls of functions
PACKAGES = ("torch", "onnxscript", "transformers", "diffusers")


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    path = tmp_path_factory.mktemp("platform") / "rk3588.yaml"
    parapipe.new_platform(chip="rk3588").write(path)
    return path


def mapped(path, platform, monkeypatch, most, *, work=None, **options):
    given = {"mapper": "heft_cpop", "cache": False, "draws": 0, "jobs": 1, **options}
    given = {"objectives": "latency-throughput", "interleave": "none", **given}
    front = parapipe.map(
        path, platform, note=lambda _: None, **with_work(monkeypatch, most, work=work), **given
    )
    assert len(front.document.processors) == 6
    return front


def test_there_are_a_dozen():
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_each_maps_on_six_processors_and_every_plan_is_sound(name, six, monkeypatch, tmp_path):
    front = mapped(structure(name), six, monkeypatch, WORK)
    assert {"gpu-alone", "big-alone"} & {name for row in front for name in row.names}
    for row in front:
        row.plan().save(tmp_path / "plan.json")
        parapipe.verify_plan(tmp_path / "plan.json")


class Calls(Work):
    """A clock that moves on with each call of a function in this thread."""

    def __init__(self):
        self.done = 0

    def __call__(self):
        return float(self.done)

    def __enter__(self):
        sys.setprofile(self._count)

    def __exit__(self, *_raised):
        sys.setprofile(None)

    def _count(self, _frame, event, _argument):
        self.done += event in ("call", "c_call")


@pytest.mark.parametrize("name", ["experts", nightly("qwen2"), nightly("raft"), nightly("swin")])
@pytest.mark.parametrize("interleave", ["none", nightly("auto")])
def test_work_ends_soon_after_its_budget(name, interleave, six, monkeypatch):
    """Counted in calls, of which a second has some ten million."""
    calls = Calls()
    options = {"mapper": "heft_cpop", "precision": "float16", "interleave": interleave}
    with calls:
        front = mapped(structure(name), six, monkeypatch, BUDGET, work=calls, **options)
    assert front.document.unfinished
    assert calls.done <= 1.1 * BUDGET + MORE


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["model", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_with_energy_and_interleaved_frames_too(name, precision, six, monkeypatch):
    options = {"interleave": "auto", "objectives": "latency-throughput-energy"}
    options |= {"mapper": "auto", "time_limit_s": 0.1, "precision": precision}
    front = mapped(structure(name), six, monkeypatch, 2000, **options)
    for row in front:
        parapipe.verify_plan(row.plan())


def assert_same_results(path, platform, monkeypatch):
    """Check that plans give what one session on the whole model gives."""
    front = mapped(path, platform, monkeypatch, WORK)
    for row in {front.best("latency").id: front.best("latency"), front[-1].id: front[-1]}.values():
        folder = path.parent / row.id
        folder.mkdir()
        document = asdict(write_session_folder(row.plan(), path, folder))
        feeds = frame(document)
        found = run_in_turn(folder, feeds)
        assert_equal(found, run_whole(path, feeds, list(found)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_with_random_weights_a_run_gives_what_one_session_gives(name, six, monkeypatch, tmp_path):
    assert_same_results(with_random_weights(name, tmp_path), six, monkeypatch)


@pytest.mark.nightly
@pytest.mark.skipif(
    not all(map(find_spec, PACKAGES)), reason=f"needs {', '.join(PACKAGES)} to export networks"
)
@pytest.mark.parametrize("name", NAMES)
def test_as_the_exporter_that_is_installed_writes_them_too(name, six, monkeypatch, tmp_path):
    from tools.third_party_models import exported

    onnx.save(exported(name), tmp_path / "model.onnx")
    assert_same_results(tmp_path / "model.onnx", six, monkeypatch)
