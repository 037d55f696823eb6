"""The target `cpp`: the files of a program, and what its source says; nothing is compiled."""

import json
import re

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from parapipe import export_plan
from parapipe.errors import ExportError, OutputError
from parapipe.targets.cpp.clusters import clusters_of
from parapipe.targets.cpp.folder import FILES, export
from parapipe.targets.cpp.source import distinct_identifiers, identifier, quoted
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import ARRANGEMENTS, plan_for, taking_turns


def on_plain(plan):
    """The same plan on CPUs that need no library."""
    processors = tuple(
        each.model_copy(update={"kind": "cpu", "backend": "plain"}) for each in plan.processors
    )
    return plan.model_copy(update={"processors": processors})


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    return path


def made_in(text):
    """Names of the tensors that the operators of each cluster make."""
    bodies = re.findall(r"^void cluster_(\d+)\(.*?^}$", text, re.MULTILINE | re.DOTALL)
    assert [int(number) for number in bodies] == list(range(len(bodies)))
    parts = re.split(r"^void cluster_\d+\(", text, flags=re.MULTILINE)[1:]
    return [re.findall(r'\.op\("\w+", "([^"]+)"', part.split("\n}\n")[0]) for part in parts]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_every_operator_stands_once_behind_those_that_make_what_it_reads(
    small, tmp_path, arrangement
):
    plan = on_plain(plan_for(small, arrangement))
    exported = export_plan(plan, "cpp", tmp_path / "out", model=small)
    text = (tmp_path / "out" / "network.cpp").read_text()
    made = [name for cluster in made_in(text) for name in cluster]
    assert len(made) == len(set(made)) > 10
    assert f"operators   {len(made)} in {len(made_in(text))} clusters" in exported.summary[0]
    for name in made:
        line = text[text.index(f'", "{name}", {{') :]
        inputs = re.search(r"\},\s+\{((?:\"[^\"]*\"(?:, )?)+)\}", line)[1]
        read = [each for each in re.findall(r'"([^"]*)"', inputs) if each in made]
        assert all(made.index(each) < made.index(name) for each in read)


def test_the_folder_has_all_that_is_needed_and_is_replaced_by_the_next_export(small, tmp_path):
    out = tmp_path / "out"
    plan = on_plain(plan_for(small, "hybrid"))
    export_plan(plan, "cpp", out, model=small)
    for names in FILES:
        for name in names.split(", "):
            assert (out / name).exists()
    assert (out / "runtime" / "CMakeLists.txt").is_file()
    assert json.loads((out / "program.json").read_text())["schema"] == "parapipe/cpp/1"
    assert not any("@" in (out / name).read_text() for name in ("main.cpp", "CMakeLists.txt"))
    (out / "build").mkdir()
    (out / "input.bin").write_bytes(b"1234")
    export_plan(plan, "cpp", out, model=small)
    assert not (out / "build").exists()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'mine\.txt'"):
        export_plan(plan, "cpp", out, model=small)


def test_the_back_ends_of_the_streams_are_switched_on_and_no_others(small, tmp_path):
    export_plan(on_plain(plan_for(small)), "cpp", tmp_path / "plain", model=small)
    text = (tmp_path / "plain" / "CMakeLists.txt").read_text()
    assert "ON CACHE" not in text
    assert "set(PARAPIPE_ONEDNN OFF CACHE" in text
    export_plan(plan_for(small), "cpp", tmp_path / "arm", model=small)
    text = (tmp_path / "arm" / "CMakeLists.txt").read_text()
    assert "set(PARAPIPE_NEON ON CACHE" in text
    assert "set(PARAPIPE_OPENCL OFF CACHE" in text


def test_operators_that_the_library_lacks_are_refused_all_at_once(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["b"], name="one"),
        helper.make_node("Det", ["a"], ["c"], name="two"),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4])],
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, [1]) for each in "bc"],
    )  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    with pytest.raises(ExportError, match=r"2 operators cannot be exported: .*one.*two"):
        export_plan(on_plain(plan_for(path)), "cpp", tmp_path / "out", model=path)
    assert not (tmp_path / "out").exists()


def test_processors_that_take_turns_on_frames_are_refused(small, tmp_path):
    plan = on_plain(plan_for(small, "sequential"))
    (stage,) = plan.stages
    (own,) = stage.processors
    taking = own.model_copy(update={"replicas": ("little",)})
    stage = stage.model_copy(update={"processors": (taking,)})
    plan = plan.model_copy(update={"stages": (stage,)})
    with pytest.raises(ExportError, match="one stream for each operator"):
        export(plan, small, tmp_path / "out")


def test_a_cluster_waits_for_those_that_make_what_it_reads_and_a_lag_starts_another(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    plan = on_plain(taking_turns(path, 1))
    from parapipe.targets.native.library_plan import Operator

    steps = [
        Operator(id=v.id, type="Relu", inputs=v.inputs[:1], outputs=v.outputs[:1])
        for v in plan.operators
    ]
    clusters, orders = clusters_of(plan, steps)
    lags = {at.operator: at.lag for s in plan.stages for p in s.processors for at in p.operators}
    assert len({each.lag for each in clusters}) > 1
    for number, cluster in enumerate(clusters):
        assert {lags[step.id] for step in cluster.operators} == {cluster.lag}
        assert all(wait < number for wait in cluster.waits)
        assert all(clusters[wait].stream != cluster.stream for wait in cluster.waits)
    for stage in plan.stages:
        for own in stage.processors:
            order = [s.id for k in orders[own.name] for s in clusters[k].operators]
            assert order == [at.operator for at in own.operators]


def test_names_are_those_that_a_compiler_takes():
    assert identifier("zoo mobilenet-v2.0") == "zoo_mobilenet_v2_0"
    assert identifier("3d") == "model_3d"
    assert identifier("float") == "float_model"
    assert identifier("äöü") == "network"
    names = distinct_identifiers(["a.b", "a-b", "a_b"])
    assert list(names.values()) == ["a_b", "a_b_2", "a_b_3"]


@given(st.text(max_size=8))
def test_a_literal_stands_for_the_bytes_of_its_text(text):
    literal = quoted(text)
    assert literal.isascii()
    assert not {"\n", "?"} & set(literal)
    read = re.sub(
        rb"\\(?:([0-7]{3})|(.))",
        lambda m: bytes([int(m[1], 8)]) if m[1] else m[2],
        literal[1:-1].encode(),
    )
    assert read == text.encode()
