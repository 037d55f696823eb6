"""Measuring on this machine, on a board, and taking results in."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import COLUMNS, OPTIONAL_COLUMNS, read_profile, write_profile
from parapipe.errors import ArgumentError, CostError, ModelError, PlatformError, RuntimeMissingError
from parapipe.export.constants import Constants
from parapipe.parts.part import Range
from parapipe.profiling import measure, measure_command, tasks
from parapipe.profiling.single_models import unit_key
from parapipe.split_search.part_prices import PartPrices
from parapipe.uncertainty.contributions import gains
from tests.cases.measuring import platform_of_parts
from tests.cases.small_network import saved

profile_of = partial(parapipe.profile, operators_only=True)


pytestmark = pytest.mark.usefixtures("short_rounds")


@pytest.fixture
def platform(tmp_path):
    """This machine in identical processors of one core."""
    return platform_of_parts(tmp_path / "here.yaml")


@pytest.fixture
def profiled(tmp_path, platform):
    return profile_of(saved(tmp_path), platform)


def test_only_the_most_useful_operators_are_measured(tmp_path, platform):
    model = saved(tmp_path)
    first = parapipe.profile(model, platform, most_useful=2)
    rows = read_profile(first.path).measurements
    assert len(rows) == first.measured == 2
    again = parapipe.profile(model, platform, most_useful=3)
    more = read_profile(again.path).measurements
    assert (again.measured, len(more)) == (3, 5)
    assert {(m.signature, m.then, m.processor) for m in rows} < {
        (m.signature, m.then, m.processor) for m in more
    }


def test_what_takes_most_of_the_doubt_away_is_measured_first(tmp_path, platform):
    model = saved(tmp_path)
    graph, target = parapipe.load_model(model), parapipe.load_platform(platform)
    costs = build_cost_table(graph, target, profiles=())
    front = parapipe.map(model, platform, objectives="latency-throughput", interleave="none")
    found = gains([each.configuration for each in front if each.names], graph, costs)
    total: dict = {}
    for (v, p), gain in found.items():
        key = unit_key(graph.operators[v], graph), costs.processors[p]
        total[key] = total.get(key, 0.0) + gain
    first, second = sorted(total.values())[-2:][::-1]
    assert first > second > 0
    (row,) = read_profile(parapipe.profile(model, platform, most_useful=1).path).measurements
    assert total[(row.signature, row.then), row.processor] == pytest.approx(first)


def test_parts_and_the_most_useful_operators_are_not_measured_together(tmp_path, platform):
    with pytest.raises(ArgumentError, match="either most_useful or parts"):
        parapipe.profile(saved(tmp_path), platform, most_useful=2, parts=True)


def test_each_distinct_operator_is_measured_once_on_each_processor(profiled, platform):
    processors = parapipe.load_platform(platform).names
    rows = read_profile(profiled.path).measurements
    assert len(rows) == 6 * len(processors) == profiled.measured
    assert {m.processor for m in rows} == set(processors)
    assert {m.then for m in rows} == {"", "Relu"}
    assert all(m.time_s > 0 and m.rows >= 2 and m.load is not None for m in rows)


def test_alike_processors_share_their_rounds_and_so_their_times(profiled, platform):
    first, *others = parapipe.load_platform(platform).names
    rows = {(m.signature, m.then, m.processor): m for m in read_profile(profiled.path).measurements}
    for (signature, then, name), m in rows.items():
        assert m.rows == 2 * (1 + len(others))
        assert m.time_s == rows[signature, then, first].time_s, name


def test_processors_of_other_descriptions_share_nothing(tmp_path, platform):
    text = platform.read_text()
    first = text.index("description:", text.index("processors:"))
    platform.write_text(
        f"{text[:first]}{text[first:].replace('description: ', 'description: my ', 1)}"
    )
    report = profile_of(saved(tmp_path), platform)
    assert {m.rows for m in read_profile(report.path).measurements} == {2}


def test_map_takes_every_time_from_the_profile_at_once(profiled, platform, tmp_path):
    front = parapipe.map(tmp_path / "small.onnx", platform)
    assert profiled.path == tmp_path / "profiles" / "here" / "onnxruntime.csv"
    assert front.to_json()["coverage"]["measured"]["time"] == 1.0


def test_what_was_measured_is_not_measured_again(profiled, platform, tmp_path):
    before = profiled.path.read_text()
    again = profile_of(tmp_path / "small.onnx", platform)
    assert (again.measured, again.kept) == (0, profiled.measured)
    assert profiled.path.read_text() == before


def test_parts_that_a_search_asks_for_are_measured_once_and_used(profiled, platform, tmp_path):
    model = tmp_path / "small.onnx"
    before = set(read_profile(profiled.path).measurements)
    found = profile_of(model, platform, parts=True)
    rows = set(read_profile(profiled.path).measurements)
    assert before < rows
    assert (found.kept, found.measured, found.others) == (len(before), len(rows) - len(before), 0)
    outputs = {m.signature.output for m in rows - before if m.signature.type == "Conv"}
    assert {"4x16x16", "8x8x16"} <= outputs  # halves along channels and along rows
    again = profile_of(model, platform, parts=True)  # searches that know more may ask for others
    assert rows <= set(read_profile(profiled.path).measurements)
    assert again.kept + again.others == len(rows)
    graph, target = parapipe.load_model(model), parapipe.load_platform(platform)
    costs = build_cost_table(graph, target, profiles=[read_profile(profiled.path)])
    prices = PartPrices(graph, target, costs, [read_profile(profiled.path)])
    half = Range(1, 0, 4)
    assert prices.part((0,), half)
    cost = prices.cost((0,), half, 0, 0)
    row = next(
        m
        for m in rows
        if (m.signature.output, m.signature.kernel, m.processor)
        == ("4x16x16", "3x3", target.names[0])
        and m.signature.inputs == "3x16x16"
    )
    assert [part.provenance for part in cost.parts] == ["measured"]
    assert cost.time_s == pytest.approx(row.time_s)


def test_a_list_of_rules_that_splits_nothing_is_told_and_the_others_are_measured(
    profiled, platform, tmp_path, monkeypatch
):
    asked = [(["prob:channels=2"], ["conv1:rows=2"])]
    monkeypatch.setattr("parapipe.api.profile.part_rule_lists", lambda *_given, **_known: asked)
    found = profile_of(tmp_path / "small.onnx", platform, parts=True)
    assert found.measured > 0
    assert any(note.startswith("some parts are not measured: ") for note in found.notes)


def test_a_bundle_holds_the_parts_too(profiled, platform, tmp_path):
    model, several = tmp_path / "small.onnx", {}
    for parts in (False, True):
        folder = tmp_path / f"bundle-{parts}"
        parapipe.write_profile_bundle(model, platform, folder, parts=parts)
        listed = json.loads((folder / "tasks.json").read_text())["operators"]
        assert all((folder / each["file"]).is_file() for each in listed)
        several[parts] = [json.dumps(each["cells"]) for each in listed]
    assert set(several[False]) < set(several[True])
    assert len(set(several[True])) == len(several[True])


def test_a_run_that_was_stopped_goes_on_where_it_was(profiled, platform, tmp_path):
    rows = read_profile(profiled.path).measurements
    write_profile(profiled.path, rows[:3])
    rest = profile_of(tmp_path / "small.onnx", platform)
    assert (rest.measured, rest.kept) == (len(rows) - 3, 3)
    assert set(rows[:3]) <= set(read_profile(profiled.path).measurements)


class Killed(BaseException):
    """Stands for a signal that ends the process."""


def killed_after(monkeypatch, model, platform, chunks, **how):
    """Measure one operator at a time, and end after some of them."""
    measured = measure.rows_measured

    def some(*given):
        yield from islice(measured(*given), chunks)
        raise Killed

    with monkeypatch.context() as changed:
        changed.setattr(measure, "CHUNK", 1)
        changed.setattr(measure, "rows_measured", some)
        with pytest.raises(Killed):
            profile_of(model, platform, **how)


def times_in(path):
    """By signature and processor, what was measured."""
    return {(m.signature, m.processor): m.time_s for m in read_profile(path).measurements}


@pytest.mark.parametrize(("again", "chunks"), list(product([True, False], [0, 1, 2])))
def test_a_profile_is_replaced_as_a_whole_or_not_at_all(
    profiled, platform, monkeypatch, again, chunks
):
    path, model = profiled.path, platform.with_name("small.onnx")
    unfinished = Path(f"{path}.unfinished")
    before = times_in(path) if again else {}
    if not again:
        path.unlink()
    killed_after(monkeypatch, model, platform, chunks, again=again)
    assert (times_in(path) if path.exists() else {}) == before
    assert unfinished.exists() is (chunks > 0)
    so_far = times_in(unfinished) if chunks else {}
    new = {key: time_s for key, time_s in so_far.items() if time_s != before.get(key)}
    rest = profile_of(model, platform, again=again)
    assert rest.path == path
    assert (rest.measured, rest.kept) == (profiled.measured - len(new), len(new))
    assert new.items() <= times_in(path).items()
    assert not unfinished.exists()


def test_what_was_left_before_the_profile_changed_is_not_gone_on_from(
    profiled, platform, tmp_path, monkeypatch
):
    model = tmp_path / "small.onnx"
    killed_after(monkeypatch, model, platform, 1, again=True)
    os.utime(profiled.path, ns=(2**62, 2**62))
    again = profile_of(model, platform, again=True)
    assert (again.measured, again.kept) == (profiled.measured, 0)


def test_plain_measuring_after_an_interrupted_repetition_mixes_nothing(
    profiled, platform, tmp_path, monkeypatch
):
    model, before = tmp_path / "small.onnx", times_in(profiled.path)
    killed_after(monkeypatch, model, platform, 2, again=True)
    profile_of(model, platform)
    assert times_in(profiled.path) == before


def test_measuring_again_replaces_the_rows(profiled, platform, tmp_path):
    again = profile_of(tmp_path / "small.onnx", platform, again=True)
    assert (again.measured, again.kept) == (profiled.measured, 0)


def test_measuring_leaves_the_affinity_as_it_was(tmp_path, platform):
    before = os.sched_getaffinity(0)
    profile_of(saved(tmp_path), platform)
    assert os.sched_getaffinity(0) == before


def test_operators_are_measured_with_the_models_own_weights_and_the_profile_says_so(profiled):
    rows = read_profile(profiled.path).measurements
    assert {m.signature.type: m.weights for m in rows} == {
        "Conv": "own", "Concat": "", "Gemm": "own", "Softmax": "",
    }  # fmt: skip
    assert not any("random numbers" in note for note in profiled.notes)


def test_weights_that_cannot_be_read_are_random_and_told(tmp_path, platform, monkeypatch):
    def unreadable(_self, name):
        raise ModelError(f"constant '{name}' is sparse")

    monkeypatch.setattr(Constants, "read", unreadable)
    report = profile_of(saved(tmp_path), platform)
    assert any("random numbers stand for weights" in note for note in report.notes)
    weights = {m.weights for m in read_profile(report.path).measurements}
    assert "random" in weights


def test_an_operator_that_does_not_run_is_named_and_the_others_are_measured(
    tmp_path, platform, monkeypatch
):
    opened = measure.session

    def session(model, *others):
        if "Softmax" in str(model):
            raise RuntimeError("no kernel")
        return opened(model, *others)

    monkeypatch.setattr(measure, "session", session)
    report = profile_of(saved(tmp_path), platform)
    processors = len(parapipe.load_platform(platform).names)
    assert report.measured == 5 * processors
    assert len([note for note in report.notes if "(prob): no kernel" in note]) == processors


def test_a_platform_that_is_not_this_machine_is_refused(tmp_path, platform):
    platform.write_text(re.sub(r"(?m)^  - \d+$", "  - 4000", platform.read_text(), count=1))
    with pytest.raises(PlatformError, match=r"is not this machine.*with `bundle` DIR"):
        profile_of(saved(tmp_path), platform)


def test_a_platform_without_cores_has_nothing_to_measure(tmp_path):
    with pytest.raises(PlatformError, match=r"npu.*give its CPU processors their cores"):
        profile_of(saved(tmp_path), "bst-a1000")


def test_without_onnx_runtime_it_is_said_how_to_install_it(tmp_path, platform, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RuntimeMissingError, match=r"pip install 'parapipe\[run\]'"):
        profile_of(saved(tmp_path), platform)
    with pytest.raises(RuntimeMissingError):
        parapipe.detect_platform()


def test_the_file_that_stands_alone_speaks_of_the_same_format_and_columns():
    assert measure_command.FORMAT == tasks.FORMAT
    assert set(measure.KEY) < {*COLUMNS, *OPTIONAL_COLUMNS}


def test_results_of_another_platform_are_told_row_by_row(profiled, platform, tmp_path):
    rows = read_profile(profiled.path).measurements
    wrong = tmp_path / "results.csv"
    strange = replace(rows[0], processor="dsp")
    slow = replace(rows[1], frequency_hz=1e6)
    write_profile(wrong, [strange, slow, *rows[2:]])
    with pytest.raises(CostError) as caught:
        parapipe.import_profile(wrong, platform)
    assert f"{wrong}:2: no processor is called 'dsp'" in str(caught.value)
    assert f"{wrong}:3: '{slow.processor}' is at 1 MHz" in str(caught.value)


def test_results_replace_equal_rows_and_leave_the_others(profiled, platform, tmp_path):
    rows = read_profile(profiled.path).measurements
    results = tmp_path / "results.csv"
    newer = replace(rows[0], time_s=0.5)
    write_profile(results, [newer])
    report = parapipe.import_profile(results, platform)
    assert (report.measured, report.kept, report.others) == (1, 0, len(rows) - 1)
    assert newer in read_profile(profiled.path).measurements


def test_a_bundle_runs_with_onnxruntime_and_numpy_alone_and_its_results_come_back(
    tmp_path, platform
):
    bundle = tmp_path / "bundle"
    assert run(["profile", str(saved(tmp_path)), "--platform", str(platform), "--bundle",
                str(bundle)]) == 0  # fmt: skip
    module = bundle / "parapipe_profiling" / "measure.py"
    module.write_text(re.sub(r"(?m)^(ROUNDS|MOST_ROUNDS) = \d+", r"\1 = 2", module.read_text()))
    python = bare_python(tmp_path / "bare")
    done = subprocess.run(
        [python, "-I", bundle / "measure.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "board.csv"
    results = str(bundle / "results.csv")
    assert run(["profile", "--import", results, "--platform", str(platform), "--out", str(out),
                "--quiet"]) == 0  # fmt: skip
    tasks = json.loads((bundle / "tasks.json").read_text())
    expected = sum(len(operator["processors"]) for operator in tasks["operators"])
    assert len(read_profile(out).measurements) == expected


def bare_python(folder: Path) -> Path:
    """Return the interpreter of a new environment that holds onnxruntime and numpy only."""
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs", "onnxruntime"):
        if (packages / name).exists():
            (Path(paths["purelib"]) / name).symlink_to(packages / name)
    return folder / "bin" / "python"


def test_noisy_rows_are_counted_of_this_model_and_told_with_their_spread(
    profiled, platform, tmp_path
):
    first, second, *others = read_profile(profiled.path).measurements
    calm = [replace(m, noisy=False) for m in others]
    foreign = replace(
        first, signature=replace(first.signature, output="7x7"), noisy=True, spread=0.9
    )
    noisy = [replace(first, noisy=True, spread=0.08), replace(second, noisy=True, spread=0.31)]
    write_profile(profiled.path, [*noisy, *calm, foreign])
    report = profile_of(tmp_path / "small.onnx", platform)
    assert (report.kept, report.others, report.noisy) == (profiled.measured, 1, 2)
    assert (report.least_spread, report.most_spread) == (0.08, 0.31)
    told = parapipe.map(tmp_path / "small.onnx", platform).to_json()["coverage"]
    assert told["noisy"]["count"] == sum(row["noisy"] for row in told["processors"].values()) == 2
    assert (told["noisy"]["least_spread"], told["noisy"]["most_spread"]) == (0.08, 0.31)
    assert 0 < told["noisy"]["time"] < told["measured"]["time"]
