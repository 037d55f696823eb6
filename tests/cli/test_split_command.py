"""`parapipe split` writes a model with the same results, or nothing and one line."""

import json
import random

import numpy as np
import onnx
import onnxruntime
import pytest

import parapipe as api
from tests.cases.small_models import parsed
from tests.cases.split_models import written
from tests.cases.split_runs import equal, feeds, run


@pytest.fixture
def model(tmp_path):
    return written(
        parsed(
            """
            net (float[1, 3, 9, 9] x) => (float[1, 8, 9, 9] y) {
              a = Conv <pads = [1, 1, 1, 1]> (x, w)
              b = Relu (a)
              y = CumSum (b, axis)
            }
            """,
            w=np.linspace(-1, 1, 8 * 27, dtype=np.float32).reshape(8, 3, 3, 3),
            axis=np.array(1),
        ),
        tmp_path,
    )


def test_it_tells_what_is_split_and_what_stays_whole_and_why(parapipe, model, tmp_path):
    out = tmp_path / "split.onnx"
    rules = "--parts", "Conv:rows=2,1", "--parts", "*:rows=2"
    ended = parapipe("split", model, *rules, "--out", out)
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"wrote {out}: 1 operator split into 2 parts",
        "  a: axis 2 0-6 6-9",
        "1 operator stays whole",
        "  y (CumSum): there is no rule that cuts its type",
    ]
    onnx.checker.check_model(out, full_check=True)
    inputs = feeds(onnx.load(model))
    assert equal(run(str(model), inputs), run(str(out), inputs))


def test_json_is_one_document_and_python_returns_the_same(parapipe, model, tmp_path):
    out = tmp_path / "split.onnx"
    ended = parapipe("split", model, "--parts", "a:channels=2", "--out", out, "--json")
    document = json.loads(ended.out)
    assert document["split"] == [
        {"name": "a", "operators": ["a", "b"], "axis": 1, "ranges": [[0, 4], [4, 8]]}
    ]
    content = out.read_bytes()
    found = api.split(model, out, parts=["a:channels=2"])
    assert json.loads(json.dumps(found.to_json())) == document
    assert out.read_bytes() == content


def test_the_split_model_is_mapped_as_any_other(parapipe, model, tmp_path):
    out = tmp_path / "split.onnx"
    parapipe("split", model, "--parts", "Conv:channels=2", "--out", out)
    graph = api.load_model(out)
    assert [v.type for v in graph.operators] == ["Conv", "Conv", "Concat", "CumSum"]
    assert graph.operators[2].work.written_bytes == 0


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("Conv:rows", "'Conv:rows' is no rule for parts: write SELECTOR:AXIS=SHARES"),
        ("Cnov:rows=2", "no type or name 'Cnov'; did you mean 'Conv'?"),
        ("y:rows=2", "nothing of"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line_and_nothing_is_written(
    parapipe, model, tmp_path, rule, complaint
):
    out = tmp_path / "split.onnx"
    assert complaint in parapipe("split", model, "--parts", rule, "--out", out).complaint
    assert not out.exists()


def test_the_model_itself_is_not_overwritten(parapipe, model):
    content = model.read_bytes()
    ended = parapipe("split", model, "--parts", "Conv:rows=2", "--out", model)
    assert "is the model itself" in ended.complaint
    assert model.read_bytes() == content


def test_a_model_with_external_weights_is_split_into_its_own_folder(parapipe, tmp_path):
    path = written(
        parsed("net (float[4, 64] x) => (float[4, 32] y) { y = MatMul (x, w) }",
               w=np.ones((64, 32), np.float32)),
        tmp_path,
        external=True,
    )  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    refused = parapipe("split", path, "--parts", "y:batch=2", "--out", elsewhere / "split.onnx")
    assert "write it into the same folder" in refused.complaint
    assert not list(elsewhere.iterdir())
    out = tmp_path / "split.onnx"
    assert parapipe("split", path, "--parts", "y:batch=2", "--out", out).code == 0
    assert out.stat().st_size < 2000
    inputs = feeds(onnx.load(path))
    assert equal(run(str(path), inputs), run(str(out), inputs))


def gathering(rng):
    """A random model of constants only: rows are taken by their indices, and weights added."""
    rows, columns = rng.randint(3, 6), rng.choice([4, 6])
    constants = {"w": np.array([[rng.random() for _ in range(columns)] for _ in range(8)], "f")}
    lines, at = ["t0 = MatMul (x, w)"], rows
    for i in range(1, rng.randint(2, 5)):
        kind, read = rng.choice(["Gather", "Add"]), f"t{i - 1}"
        if kind == "Gather":
            count = rng.randint(2, 4)
            dtype = rng.choice([np.int32, np.int64])
            constants[f"i{i}"] = np.array([rng.randrange(at) for _ in range(count)], dtype)
            lines.append(f"t{i} = Gather <axis = 1> ({read}, i{i})")
            at = count
        else:
            constants[f"c{i}"] = np.array([rng.random() for _ in range(columns)], "f")
            lines.append(f"t{i} = Add ({read}, c{i})")
    lines.append(f"y = Relu (t{len(lines) - 1})")
    head = f"net (float[1, {rows}, 8] x) => (float[1, {at}, {columns}] y)"
    return parsed(f"{head} {{ {'  '.join(lines)} }}", **constants)


@pytest.mark.parametrize("seed", range(20))
def test_any_constants_in_files_of_their_own_are_split_so_that_runtimes_load_them(
    parapipe, tmp_path, seed
):
    rng = random.Random(seed)
    path = written(gathering(rng), tmp_path, external=True, least_bytes=0)
    rules = (("MatMul", "2"), ("Gather", "1"), ("Add", "1"), ("Relu", "2"))
    there = {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
    given = [
        text
        for kind, axis in rules
        if kind in there
        for text in ("--parts", f"{kind}:{axis}={rng.choice(['2', '1,1', '2,1'])}")
    ]
    out = tmp_path / "split.onnx"
    ended = parapipe("split", path, *given, "--granularity", "onnx", "--out", out)
    assert ended.code == 0, ended.err
    inputs = feeds(onnx.load(path))
    assert equal(run(str(path), inputs), run(str(out), inputs))
    options = onnxruntime.SessionOptions()  # its optimiser reads indices, too
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(out, options, providers=["CPUExecutionProvider"])
    assert equal(run(str(path), inputs), session.run(None, inputs))
