"""Several models as one graph and as one file: both bear the same names."""

import numpy as np
import pytest

from parapipe.errors import ModelError
from parapipe.graph.onnx_import import import_checked
from parapipe.graph.operator_graph import Member, ModelSource
from parapipe.graph.rewrites import fuse
from parapipe.graph.several import union, union_proto
from tests.cases.session_runs import session
from tests.cases.small_models import parsed
from tests.cases.small_network import small_network

FIELDS = ("operators", "tensors", "constants", "inputs", "outputs", "opsets")


def adding(opset=14):
    return parsed(
        "agraph (float[1,4] x) => (float[1,4] y) { s = Add(x, w) y = Relu(s) }",
        opset=opset,
        w=np.arange(4, dtype=np.float32),
    )


def members(*counts):
    return [Member(f"m{i}", ModelSource(f"m{i}.onnx", "0" * 64), n) for i, n in enumerate(counts)]


def graph_of(proto, source):
    return fuse(import_checked(proto, source=source, granularity="onnx"))


def test_the_graph_of_the_file_is_the_union_of_the_graphs():
    models, several = [adding(), small_network()], members(2, 1)
    made = union([graph_of(m, e.source) for m, e in zip(models, several, strict=True)], several)
    read = graph_of(union_proto(models, several), made.source)
    for field in FIELDS:
        assert getattr(made, field) == getattr(read, field), field


def test_frames_have_tensors_of_their_own_and_share_initializers():
    several = members(2)
    made = union([graph_of(adding(), several[0].source)], several)
    assert made.inputs == ("m0.1/x", "m0.2/x")
    assert [each.id for each in made.operators] == ["m0.1/y", "m0.2/y"]
    assert [*made.constants] == ["m0/w"]


def test_a_single_frame_bears_no_number():
    several = members(1, 1)
    graphs = [graph_of(adding(), each.source) for each in several]
    assert union(graphs, several).outputs == ("m0/y", "m1/y")


def test_the_file_gives_what_each_model_gives_by_itself(tmp_path):
    models, several = [adding(), small_network()], members(2, 1)
    path = tmp_path / "several.onnx"
    path.write_bytes(union_proto(models, several).SerializeToString())
    opened, rng = session(path), np.random.default_rng(0)
    fed = {each.name: rng.random(each.shape, np.float32) for each in opened.get_inputs()}
    names = [each.name for each in opened.get_outputs()]
    found = dict(zip(names, opened.run(names, fed), strict=True))
    for model, member in zip(models, several, strict=True):
        alone = tmp_path / f"{member.name}.onnx"
        alone.write_bytes(model.SerializeToString())
        own = session(alone)
        for frame in range(member.frames):
            prefix = member.prefix(frame)
            given = {each.name: fed[prefix + each.name] for each in own.get_inputs()}
            for each, array in zip(own.get_outputs(), own.run(None, given), strict=True):
                np.testing.assert_array_equal(found[prefix + each.name], array)


def test_models_with_other_versions_of_operators_are_refused_by_name():
    with pytest.raises(ModelError, match=r"'m0' has 14.*'m1' has 13.*version_converter"):
        union_proto([adding(14), adding(13)], members(1, 1))
