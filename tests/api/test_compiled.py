"""Times out of a compiler, and searches with it in the loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import parapipe
from parapipe.api.compiled_map import differences
from parapipe.cli.command_line import run
from parapipe.cost.compiled_groups import join_compiled
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import read_profile, write_profile
from parapipe.errors import ArgumentError, FrontError, PlatformError
from tests.cases.priced_compiler import CUT_CYCLES, PLATFORM, PricedCompiler, chain


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    path = tmp_path / "rk3588.yaml"
    path.write_text(PLATFORM)
    return path


def test_a_profile_is_compiled(tmp_path, platform, monkeypatch) -> None:
    tool = PricedCompiler().use(monkeypatch)
    report = parapipe.compile_profile(chain(tmp_path), platform, "rknn", precision="int8")
    assert report.path == tmp_path / "profiles" / "rk3588" / "rknn.csv"
    assert len(tool.jobs) == 1
    assert report.measured == 4 * 3  # three groups and the pool, on three cores
    rows = read_profile(report.path).measurements
    assert {(m.method, m.then) for m in rows} == {("compiled", "Sigmoid Mul"), ("unpriced", "")}


def test_what_is_refused_as_a_whole_is_compiled_in_parts(tmp_path, platform, monkeypatch) -> None:
    tool = PricedCompiler(refuses=("MaxPool",)).use(monkeypatch)
    report = parapipe.compile_profile(chain(tmp_path), platform, "rknn", precision="int8")
    assert ("pool",) in tool.jobs
    (note,) = report.notes
    assert note.startswith(
        "MaxPool 'pool' does not compile on npu0, npu1 and npu2: segment.onnx: refused: MaxPool; "
    )
    types = {m.signature.type for m in read_profile(report.path).measurements}
    assert "Conv" in types
    assert "MaxPool" not in types


def test_inspect_says_what_the_compiler_does_not_run(
    tmp_path, platform, monkeypatch, capsys
) -> None:
    tool = PricedCompiler(refuses=("MaxPool",), leaves=("Mul",)).use(monkeypatch)
    model = chain(tmp_path)
    inspection = parapipe.inspect(model, platform=platform, precision="int8", compiler="rknn")
    (row,) = inspection.compiled
    assert (row.processors, row.target) == (("npu0", "npu1", "npu2"), "rk3588")
    assert len(tool.jobs[0]) == 10  # all nodes are asked, whatever the platform says
    by_name = {each.operator: each for each in row.fallbacks}
    assert row.on_processor == row.operators - len(by_name)
    assert (by_name["pool"].where, by_name["pool"].type) == ("refused", "MaxPool")
    multiplied = by_name["mul0"]
    assert (multiplied.where, multiplied.reason) == ("cpu", "too wide")
    assert multiplied.shapes == ((1, 16, 64, 64),)
    graph = parapipe.load_model(model)
    costs = build_cost_table(graph, parapipe.load_platform(platform), profiles=(), precision="int8")
    v = [each.name for each in graph.operators].index("mul0")
    others = {
        n: costs.time_s(v, p) for p, n in enumerate(costs.processors) if n in ("little", "big")
    }
    assert multiplied.runs_on == min(others, key=others.__getitem__)
    assert multiplied.time_s == pytest.approx(others[multiplied.runs_on])
    sentence = multiplied.sentence("npu0, npu1 and npu2")
    assert sentence.startswith("Mul 'mul0' is left to the CPU on npu0, npu1 and npu2: too wide; ")
    assert sentence.endswith(f": --pin mul0={multiplied.runs_on}")
    words = ("inspect", model, "--platform", platform, "--precision", "int8", "--compiler", "rknn")
    assert run([str(word) for word in words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert sentence in text
    count = f"{row.on_processor} of {row.operators} fused operators on npu0, npu1, npu2"
    assert f"0.0 for rk3588 in int8 runs {count}" in text


def test_inspect_counts_the_times_that_map_would_use(
    tmp_path, platform, monkeypatch, capsys
) -> None:
    PricedCompiler().use(monkeypatch)
    model = chain(tmp_path)
    words = ("inspect", model, "--platform", platform, "--precision", "int8")
    parapipe.compile_profile(model, platform, "rknn", precision="int8")
    coverage = parapipe.inspect(model, platform=platform, precision="int8").coverage
    mapped = parapipe.map(model, platform, note=print, **OPTIONS).document.coverage
    assert coverage.times.compiled == mapped.compiled is not None
    for count, said in ((6, "after conversion to int8"), (4, "in its own types")):
        assert run([str(word) for word in words[:count]]) == 0
        assert f"rk3588, the model {said} (--precision)" in capsys.readouterr().out


def test_inspect_with_a_compiler_needs_a_platform(tmp_path) -> None:
    with pytest.raises(ArgumentError, match="`compiler` needs a `platform`"):
        parapipe.inspect(chain(tmp_path), compiler="rknn")


def test_a_type_that_the_npu_lacks_is_said(tmp_path, platform, monkeypatch) -> None:
    PricedCompiler().use(monkeypatch)
    with pytest.raises(ArgumentError, match=r"'npu0' runs no operator of .* in precision model"):
        parapipe.compile_profile(chain(tmp_path), platform, "rknn")


def test_a_platform_without_the_compiler_is_said(tmp_path, platform) -> None:
    with pytest.raises(ArgumentError, match=r"no processor with the compiler 'vela'"):
        parapipe.compile_profile(chain(tmp_path), platform, "vela", precision="int8")


def test_a_platform_without_a_fit_is_said(tmp_path, platform, monkeypatch) -> None:
    PricedCompiler().use(monkeypatch)
    platform.write_text(
        f"{PLATFORM}processors:\n  - name: npu\n    part: TDA4VM-MMA\n"
        "    compiler: {name: rknn, target: rk3588}\n"
    )
    with pytest.raises(PlatformError, match="does not say how cycles of processor 'npu'"):
        parapipe.compile_profile(chain(tmp_path), platform, "rknn", precision="int8")


OPTIONS = {"precision": "int8", "interleave": "none", "draws": 0, "cache": False, "jobs": 1}


def test_a_group_takes_the_power_of_its_convolution_as_long_as_it_runs(
    tmp_path, platform, monkeypatch
) -> None:
    PricedCompiler().use(monkeypatch)
    model = chain(tmp_path, 1)
    report = parapipe.compile_profile(model, platform, "rknn", precision="int8")
    profile = read_profile(report.path)
    graph = join_compiled(parapipe.load_model(model), [profile])
    board = parapipe.load_platform(platform)
    costs = build_cost_table(graph, board, profiles=[profile], precision="int8")
    (group_s,) = {m.time_s for m in profile.measurements if m.then}
    v = [each.id for each in graph.operators].index("mul0")
    p = costs.processors.index("npu0")
    assert costs.time_s(v, p) == pytest.approx(group_s)
    # 1.56e-9 W/(V² Hz) at 0.8 V and 1 GHz, all of it while a convolution of 3 x 3 runs
    assert costs.energy_j(v, p) == pytest.approx(1.56e-9 * 0.8**2 * 1e9 * 1.0 * group_s)


FEW = ("little", "gpu", "npu1", "npu2")


def test_map_uses_compiled_times_and_cuts_no_group(tmp_path, platform, monkeypatch) -> None:
    PricedCompiler().use(monkeypatch)
    front = parapipe.map(chain(tmp_path), platform, compiler="rknn", note=print, **OPTIONS)
    record = front.document.compilation
    assert record is not None
    assert (record.compiler, record.version, record.rounds) == ("rknn", "0.0", 1)
    assert record.largest_difference < 0.02
    assert record.total_difference <= record.largest_difference
    assert front.document.options.compiler == "rknn"
    assert "--compiler rknn" in front.document.command
    assert front.document.coverage.compiled is not None
    assert {each.id for each in front.document.operators} == {"mul0", "mul1", "mul2", "pool"}
    folder = tmp_path / "front"
    front.write(folder)
    assert parapipe.load_front(folder).document == front.document
    told = parapipe.explain(folder, front.configurations[0].id)
    assert told is not None


def test_map_searches_again_where_segments_take_longer(tmp_path, platform, monkeypatch) -> None:
    tool = PricedCompiler(cut=CUT_CYCLES).use(monkeypatch)
    notes: list[str] = []
    model = chain(tmp_path, 6)
    front = parapipe.map(model, platform, compiler="rknn", note=notes.append, **OPTIONS)
    record = front.document.compilation
    assert record is not None
    assert 1 < record.rounds <= 3
    assert notes
    assert len(notes) == len({*notes})  # each search would say them again
    assert tool.whole == 6 * 3 + 1


def test_a_front_names_its_profiles_which_may_grow_since(tmp_path, platform, monkeypatch) -> None:
    PricedCompiler().use(monkeypatch)
    model, folder = chain(tmp_path), tmp_path / "front"
    options = {"exclude": FEW, "note": print, **OPTIONS}
    without = parapipe.map(model, platform, **options)
    assert without.document.inputs.profiles == ()
    beside = tmp_path / "profiles" / "rk3588" / "more.csv"
    small = tmp_path / "small"
    small.mkdir()
    options_of_rows = {"precision": "int8", "out": beside}
    parapipe.compile_profile(chain(small, 1), platform, "rknn", **options_of_rows)
    front = parapipe.map(model, platform, **options)
    assert front.document.inputs.profiles == (str(beside),)
    front.write(folder)
    npu = next(c.id for c in front.configurations if c.stages[0].processors[0].name == "npu0")
    before = parapipe.explain(folder, npu)
    assert len(front.document.operators) == 8  # one group of three operators, and seven
    parapipe.compile_profile(model, platform, "rknn", **options_of_rows)
    rows = [m for m in read_profile(beside).measurements if m.then]  # three groups, no pool
    write_profile(beside, rows)
    assert parapipe.explain(folder, npu).figures == before.figures
    write_profile(beside, [replace(m, time_s=2 * m.time_s) for m in rows])
    with pytest.raises(FrontError, match="a profile has changed since"):
        parapipe.explain(folder, npu)


def test_the_cpu_that_controls_an_npu_runs_what_the_compiler_leaves_to_it(
    tmp_path, platform, monkeypatch
) -> None:
    PricedCompiler(leaves=("MaxPool",)).use(monkeypatch)
    model = chain(tmp_path, 1)
    alone_s = []
    options = {"compiler": "rknn", "note": print, **OPTIONS}
    for exclude in (FEW, (*FEW, "big")):
        front = parapipe.map(model, platform, exclude=exclude, **options)
        assert front.document.compilation.on_cpu == ("pool",)
        rows = front.document.configurations
        alone_s.append(next(row.latency_s for row in rows if row.drawing.startswith("npu")))
    assert alone_s[0] == pytest.approx(alone_s[1])


def test_differences_are_told_of_one_segment_and_of_all() -> None:
    # 3 in place of 2, 7 in place of 8: half of 2 at most, 2 of 10 in total
    assert differences([(3.0, 2.0), (7.0, 8.0)]) == pytest.approx((0.5, 0.2))
    assert differences([]) == (0.0, 0.0)


def test_fronts_that_ask_no_compiler_say_nothing_of_it(tmp_path, platform) -> None:
    front = parapipe.map(chain(tmp_path), platform, note=print, **OPTIONS)
    text = front.document.to_bytes().decode()
    assert '"compil' not in text


def test_operators_are_not_split_with_a_compiler(tmp_path, platform) -> None:
    with pytest.raises(ArgumentError, match="a compiler fuses operators"):
        parapipe.map(chain(tmp_path), platform, compiler="rknn", split="auto")
