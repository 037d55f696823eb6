"""`profile MODEL --import FILE`: other tools' profiles as profiles of parapipe."""

import json

import numpy as np
import onnxruntime
import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import read_profile
from parapipe.errors import ArgumentError, CostError, ProfilingError

EVERY = [
    "conv1,2", "left1,1", "left3,3", "right1,0.5", "join,0.25", "fc,4", "prob,0.125",
]  # fmt: skip


def lines(processor, rows=EVERY):
    return [row.replace(",", f",{processor},") for row in rows]


@pytest.fixture(scope="module")
def traced(small):
    """What ONNX Runtime's profiler writes of three runs of the small network."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(small[0].with_name("trace"))
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(small[0], options, providers=["CPUExecutionProvider"])
    for _ in range(3):
        session.run(None, {"data": np.ones((1, 3, 16, 16), np.float32)})
    return session.end_profiling()


def test_what_onnx_runtime_profiled_here_is_imported_whole_and_mapped(small, traced, tmp_path):
    model, platform = small
    out = tmp_path / "ort.csv"
    report = parapipe.import_profile(traced, platform, model, processor="big", out=out)
    told = report.imported
    assert (told.format, told.unmatched, told.without) == ("onnxruntime", (), ())
    assert told.imported_s == pytest.approx(told.layers_s)
    assert 0 < told.layers_s <= told.tool_s * 1.5  # a run's layers are not longer than the run
    rows = read_profile(out).measurements
    assert sum(m.time_s * m.rows for m in rows) == pytest.approx(told.layers_s, abs=1e-8)
    assert {(m.processor, m.frequency_hz) for m in rows} == {("big", 2.4e9)}
    front = parapipe.map(model, platform, profiles=[out], cache=False, note=lambda _note: None)
    assert front.document.coverage.processors["big"].measured == 1


def test_a_table_of_two_processors_gives_both_their_rows(small, table, tmp_path):
    file = table(*lines("big"), *lines("gpu"))
    report = parapipe.import_profile(file, small[1], small[0], out=tmp_path / "p.csv")
    rows = read_profile(tmp_path / "p.csv").measurements
    for name in ("big", "gpu"):
        own = [m.time_s * m.rows for m in rows if m.processor == name]
        assert sum(own) == pytest.approx(sum(float(row.split(",")[1]) for row in EVERY) / 1e3)
    assert report.imported.layers == 2 * len(EVERY)
    assert {m.method for m in rows} == {"timed"}


def test_one_time_of_several_operators_is_shared_by_their_prices(small, graph, table, tmp_path):
    model, platform = small
    file = table("left1 + left3,big,6", "fc,big,1")
    report = parapipe.import_profile(file, platform, model, out=tmp_path / "p.csv")
    assert report.imported.blocks == 1
    target = parapipe.load_platform(platform)
    costs = build_cost_table(graph, target)
    names = [each.name for each in graph.operators]
    own_s = [costs.time_s(names.index(name), 1) for name in ("left1", "left3")]
    rows = read_profile(tmp_path / "p.csv").measurements
    shared_s = sorted(m.time_s for m in rows if m.method == "apportioned")
    assert shared_s == pytest.approx(sorted(6e-3 * each / sum(own_s) for each in own_s), abs=1e-9)


def test_equal_processors_have_the_same_rows(small, table, tmp_path):
    out = tmp_path / "p.csv"
    parapipe.import_profile(
        table("conv1,NPU,2"), small[1], small[0], processor="npu0", precision="float16", out=out
    )
    rows = read_profile(out).measurements
    assert {m.processor for m in rows} == {"npu0", "npu1", "npu2"}
    assert {m.signature.dtype for m in rows} == {"float16"}


def test_what_matches_nothing_is_told_with_its_share(small, table, capsys, tmp_path):
    model, platform = small
    file = table("conv1,big,3", "stranger,big,1")
    arguments = ["profile", model, "--platform", platform, "--import", file]
    assert run([str(each) for each in (*arguments, "--out", tmp_path / "p.csv", "--json")]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)["imported"]
    assert document["unmatched"] == [{"name": "stranger", "time_s": 0.001, "share": 0.25}]
    assert "prob" in document["without"]
    assert any("'stranger' 25.0%" in note for note in json.loads(printed.out)["notes"])


@pytest.mark.parametrize(
    ("rows", "keywords", "told"),
    [
        (["conv1,dsp,1"], {}, (ProfilingError, "tells of 'dsp'.*give `processor` NAME")),
        (["conv1,a,1", "fc,b,1"], {}, (ProfilingError, "'a' and 'b'.*a=NAME")),
        (["conv1,a,1"], {"processor": "bag"}, (ProfilingError, "no processor 'bag'.*'big'")),
        (["conv1,a,1"], {"processor": "b=big"}, (ProfilingError, "not tell of 'b' but of 'a'")),
        (["x,big,1"], {}, (ProfilingError, "'x'.* stands for an operator of model")),
        (["conv1,npu0,1"], {}, (ProfilingError, "'npu0' does not run 1 operator .*precision")),
        (["conv1,big,0"], {}, (ProfilingError, "tells no time")),
        (
            ["conv1,big,-1", ",big,1"],
            {},
            (CostError, r":2: milliseconds is '-1'.*:3: name is empty"),
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_what_to_do(small, table, rows, keywords, told):
    error, words = told
    with pytest.raises(error, match=words):
        parapipe.import_profile(table(*rows), small[1], small[0], **keywords)


def test_a_model_is_named_for_a_tools_file_and_for_no_other(small, table, tmp_path):
    model, platform = small
    with pytest.raises(ArgumentError, match="name the model"):
        parapipe.import_profile(table("conv1,big,1"), platform)
    with pytest.raises(ProfilingError, match=r"no known format.*ONNX Runtime.*milliseconds"):
        parapipe.import_profile(platform, platform, model)
    parapipe.import_profile(table("conv1,big,1"), platform, model, out=tmp_path / "own.csv")
    with pytest.raises(ProfilingError, match="without a model"):
        parapipe.import_profile(tmp_path / "own.csv", platform, model)
