"""What is measured of processors that are busy at the same time."""

import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import yaml

import parapipe
from parapipe.cost.co_run_fit import read_co_run_samples
from parapipe.errors import ProfilingError
from parapipe.platform.load import read_platform
from parapipe.profiling import under_load
from parapipe.profiling.co_runs import measure_kernels
from parapipe.profiling.detected_co_runs import cache_shares
from parapipe.profiling.figures import model_of
from parapipe.profiling.topology import Cache, Cluster, Core
from tests.cases.soc_texts import SOC, spoil


def test_of_two_others_every_set_is_measured_and_of_more_each_and_all():
    assert under_load.busy_sets(["a"]) == [("a",)]
    assert under_load.busy_sets(["a", "b"]) == [("a",), ("b",), ("a", "b")]
    assert under_load.busy_sets(["a", "b", "c"]) == [("a",), ("b",), ("c",), ("a", "b", "c")]


class Kernel:
    """An operator whose time is set: so many times as long as others are busy."""

    batch = 1

    def __init__(self, busy, factor):
        self.busy, self.factor = busy, factor

    def pin(self):
        pass

    def run(self):
        pass

    def time_batch(self, count):
        assert count == 1
        return (self.factor if self.busy else 1.0), False


def test_a_factor_is_the_time_beside_others_over_the_time_alone(monkeypatch):
    busy = []

    @contextmanager
    def at_work(loads):
        busy.extend(loads)
        yield
        busy.clear()

    monkeypatch.setattr(under_load, "_busy", at_work)
    monkeypatch.setattr(under_load, "WINDOW_S", 0.0)
    conditions = {(("b", "c"), "memory"): [["x"], ["y"]]}
    row = {"name": "n", "processor": "a", "class": "memory", "moved_bytes": "8"}
    (measured,) = under_load._rows_of(Kernel(busy, 1.6), conditions, row)
    assert measured == row | {
        "busy": "b c", "busy_class": "memory", "alone_s": "1.000000000", "factor": "1.6000",
        "spread": "0.0000", "rounds": str(under_load.ROUNDS),
    }  # fmt: skip
    assert set(measured) == set(under_load.COLUMNS)


def test_what_is_busy_runs_its_operators_in_turn_until_it_is_stopped():
    ran = []

    class Noted(Kernel):
        def run(self):
            ran.append((self.factor, threading.get_ident()))

    with under_load._busy([[Noted([], 1), Noted([], 2)], [Noted([], 3)]]):
        while len({each for each, _ in ran}) < 3:
            pass
    count = len(ran)
    assert {each for each, _ in ran} == {1, 2, 3}
    assert len({thread for _, thread in ran}) == 2
    assert len(ran) == count


TWO_CORES = spoil(
    ("    kind: gpu\n    backend: nominal\n    source: guess\n    host: cpu\n",
     "    kind: cpu\n    backend: nominal\n    source: guess\n    cores: [1]\n"),
    ("cores: [0, 1]", "cores: [0]"),
)  # fmt: skip
ONE_CORE = SOC.replace("cores: [0, 1]", "cores: [0]")


@pytest.fixture
def files(tmp_path):
    """Return the paths of a small model, of a platform of two cores and of one of a single core."""
    paths = [tmp_path / name for name in ("small.onnx", "two.yaml", "one.yaml")]
    text = "(float[8,64] x, float[64,64] w) => (float[8,64] y) { z = MatMul(x, w) y = Softmax(z) }"
    paths[0].write_bytes(model_of(text).SerializeToString())
    paths[1].write_text(TWO_CORES)
    paths[2].write_text(ONE_CORE)
    return paths


def run_bundle(folder, option):
    command = [sys.executable, "measure.py", option]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_kernels_are_measured_on_each_processor_beside_the_other_one():
    processors = read_platform(TWO_CORES, "soc.yaml").processors
    samples, notes = measure_kernels(processors, 1 << 20)
    assert notes == ()
    assert [(each.processor, each.busy) for each in samples] == 4 * [("cpu", ("gpu",))] + 4 * [
        ("gpu", ("cpu",))
    ]
    assert {(each.operator_class, each.busy_class) for each in samples} == {
        (own, other) for own in ("compute", "memory") for other in ("compute", "memory")
    }
    assert all(each.factor > 0 and each.alone_s > 0 for each in samples)


def test_a_bundle_of_two_processors_writes_what_fit_slowdowns_reads(files, tmp_path):
    model, two, _ = files
    parapipe.write_profile_bundle(model, two, tmp_path / "bundle")
    for option, count in (("--co-runs", 8), ("--under-load", 4)):
        done = run_bundle(tmp_path / "bundle", option)
        assert done.returncode == 0, done.stderr
        file = tmp_path / "bundle" / f"{option[2:]}.csv"
        assert len(read_co_run_samples(file)) == count
        fits = parapipe.fit_slowdowns(file, two)
        assert sum(fit.samples for fit in fits) == count
        assert all(fit.factor >= 1 for fit in fits)


def test_a_bundle_says_what_it_takes_and_that_one_processor_is_not_enough(files, tmp_path):
    model, _, one = files
    parapipe.write_profile_bundle(model, one, tmp_path / "bundle")
    lone, wrong = (run_bundle(tmp_path / "bundle", option) for option in ("--co-runs", "--all"))
    assert lone.returncode == 1
    assert "fewer than two processors run here" in lone.stderr
    assert (wrong.returncode, "--under-load, --co-runs" in wrong.stderr) == (2, True)


def test_operators_are_measured_while_the_other_processor_runs_the_model(files):
    model, two, _ = files
    fits = parapipe.measure_under_load(model, two)
    assert {(fit.processor, fit.busy) for fit in fits} == {("cpu", ("gpu",)), ("gpu", ("cpu",))}
    assert all(fit.busy_class is None and fit.operator_class for fit in fits)
    assert sum(fit.samples for fit in fits) == 4


def test_one_processor_is_never_under_load(files):
    model, _, one = files
    with pytest.raises(ProfilingError, match="fewer than two processors"):
        parapipe.measure_under_load(model, one)


def test_the_command_prints_a_section_that_a_platform_file_takes(files):
    model, two, _ = files
    words = ["profile", str(model), "--platform", str(two), "--under-load", "--quiet"]
    command = [sys.executable, "-m", "parapipe.cli.main", *words]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    law, source = (yaml.safe_load(text) for text in printed.stdout.split("# once, under sources:"))
    whole = yaml.safe_load(TWO_CORES)
    whole |= law | {"sources": whole["sources"] | source}
    assert len(read_platform(yaml.safe_dump(whole), "two.yaml").co_run.slowdowns) >= 2


def test_a_shared_cache_counts_in_equal_shares():
    def core(cpu, *caches):
        return Core(cpu, (cpu,), "", None, (1e9,), frozenset(), -1, -1, caches)

    last = Cache(3, 32 << 20, frozenset({0, 1, 2}))
    cores = [core(cpu, Cache(2, 1 << 20, frozenset({cpu})), last) for cpu in range(3)]
    assert cache_shares([Cluster("one", (cores[0],)), Cluster("two", tuple(cores[1:]))]) == {
        "one": 16 << 20,
        "two": 16 << 20,
    }
    private = core(0, Cache(2, 1 << 20, frozenset({0}))), core(1, Cache(2, 1 << 20, frozenset({1})))
    assert cache_shares([Cluster("both", private)]) == {"both": 2 << 20}
