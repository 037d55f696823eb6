"""Parts that write into one buffer: no session joins or cuts what lies in place."""

import json
import os
import random
from dataclasses import replace

import numpy as np
import onnx
import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.documents.compared_runs import segment_times
from parapipe.errors import ComparisonError
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.fields import DamagedError
from parapipe.runtime.folder import open_folder
from parapipe.runtime.sessions import open_sessions, stoppable_options
from parapipe.runtime.views import Views, check_views
from tests.cases.split_runs import equal, random_rules, run, split

ONE = min(os.sched_getaffinity(0))
TOKENS, CHANNELS = 12, 8


def written(path, body, results="y"):
    """A network of tokens and a small image; its weights are random."""
    rng = np.random.default_rng(0)
    made = ", ".join(f"float[1,{TOKENS},{CHANNELS}] {name}" for name in results.split())
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 17]> tokens '
        f"(float[1,{TOKENS},{CHANNELS}] x) => ({made}) {{ {body} }}"
    )
    for name in "vw":
        weights = rng.standard_normal((CHANNELS, CHANNELS)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.save(model, path)
    return model


def planned(model, rules, where, path, early=()):
    """Split a model, and plan it with each operator on the processor that `where` says.

    Operators that are `early`, by their ids, are a stage before the others.
    """
    made, _ = split(model, *rules)
    onnx.save(made, path)
    graph, target = parapipe.load_model(path), parapipe.load_platform("amlogic-a311d")
    costs = build_cost_table(graph, target)
    placed = tuple(where(operator) for operator in graph.operators)
    late = [each.id not in early for each in graph.operators]
    stages = tuple(tuple(v for v in range(len(late)) if late[v] == at) for at in sorted({*late}))
    mapping = mapping_of(graph, target, costs, Assignment(placed, stages, ordered=True))
    return build_plan(graph, target, costs, mapping)


def exported(model, rules, where, folder, early=()):
    """Export such a plan."""
    (folder / "run").mkdir(parents=True)
    path = folder / "split.onnx"
    plan = planned(model, rules, where, path, early)
    write_session_folder(plan, path, folder / "run")
    return open_folder(folder / "run").on_cores({p.name: (ONE,) for p in plan.processors})


def frames_of(count):
    rng = np.random.default_rng(1)
    shape = (count, 1, TOKENS, CHANNELS)
    return [{"x": each} for each in rng.standard_normal(shape).astype(np.float32)]


def check_results(folder, model, frames, **options):
    for frame, made in zip(frames, Executor(folder, **options).run(frames), strict=True):
        wanted = run(model, frame)
        assert equal(wanted, [made[each.tensor] for each in folder.outputs])


def by_part(operator):
    return 1 if "/part1" in operator.id else 0


def test_parts_write_their_range_of_one_buffer_and_who_reads_it_is_given_that(tmp_path):
    model = written(tmp_path / "m.onnx", "a = MatMul(x, w)  b = Softmax<axis=1>(a)  y = Relu(b)")
    folder = exported(model, ["a:tokens=5,7"], by_part, tmp_path / "out")
    views = {each.tensor: (each.whole, each.begin, each.end) for each in folder.views}
    assert views == {
        "a/part0": ("a", 0, 5 * CHANNELS),
        "a/part1": ("a", 5 * CHANNELS, TOKENS * CHANNELS),
        "x/1:0-5": ("x", 0, 5 * CHANNELS),
        "x/1:5-12": ("x", 5 * CHANNELS, TOKENS * CHANNELS),
    }
    files = [onnx.load(folder.path / each.file) for each in folder.segments]
    assert not {"Concat", "Slice"} & {node.op_type for file in files for node in file.graph.node}
    whole = onnx.load(folder.path / folder.whole.file)
    assert [node.op_type for node in whole.graph.node].count("Concat") == 1
    first, second, last = folder.segments
    sessions, _ = open_sessions(folder)
    buffers, (options, _), (frame,) = Views(folder), stoppable_options(), frames_of(1)
    made = {}
    for segment in (first, second):
        for at in (0, 1):  # frames have buffers of their own
            (array,) = buffers.run(
                sessions[segment.processor, segment.id], segment, at, frame, options
            )
            made[segment.outputs[0], at] = array
    parts = [made["a/part0", 0], made["a/part1", 0]]
    assert parts[1].__array_interface__["data"][0] == (
        parts[0].__array_interface__["data"][0] + parts[0].nbytes
    )
    assert not np.shares_memory(made["a/part0", 0].base, made["a/part0", 1].base)
    (y,) = buffers.run(sessions[last.processor, last.id], last, 0, {}, options)
    assert equal(run(model, frame), [y])
    check_results(folder, model, frames_of(20), queue=4)


def test_a_join_stays_where_its_result_leaves_the_model_or_one_session_makes_and_reads(tmp_path):
    body = "a = MatMul(x, w)  b = Softmax<axis=1>(a)  y = Relu(b)"
    model = written(tmp_path / "m.onnx", body, "a y")
    folder = exported(model, ["a:tokens=5,7"], by_part, tmp_path / "result")
    assert {each.whole for each in folder.views} == {"x"}
    check_results(folder, model, frames_of(3))
    model = written(tmp_path / "n.onnx", body)
    folder = exported(model, ["a:tokens=5,7"], lambda _: 0, tmp_path / "one")
    assert "a" not in {each.whole for each in folder.views}
    check_results(folder, model, frames_of(3))


@pytest.mark.parametrize("seed", range(30))
def test_random_parts_anywhere_give_the_results_of_one_session(seed, tmp_path):
    rng = random.Random(seed)
    lines, names = [], ["x"]
    for i in range(rng.randint(3, 8)):
        read, other, name = rng.choice(names[-3:]), rng.choice(names), f"t{i}"
        lines.append(
            rng.choice([
                f"{name} = MatMul({read}, {rng.choice('vw')})",
                f"{name} = Add({read}, {other})",
                f"{name} = Relu({read})",
                f"{name} = Softmax<axis={rng.choice((1, 2))}>({read})",
            ])
        )  # fmt: skip
        names.append(name)
    lines.append(f"y = Tanh({names[-1]})")
    model = written(tmp_path / "m.onnx", "\n".join(lines))
    graph = parapipe.load_model(tmp_path / "m.onnx")
    rules = random_rules(graph, rng, most=2) or ["y:tokens=1,2"]
    folder = exported(model, rules, lambda _: rng.randrange(3), tmp_path / "out")
    check_results(folder, model, frames_of(8), queue=rng.randint(2, 4))


def test_frames_that_take_turns_have_buffers_as_long_as_they_are_read(tmp_path):
    body = "a = MatMul(x, w)  b = Softmax<axis=1>(a)  c = MatMul(b, v)  d = Softmax<axis=1>(c)"
    model = written(tmp_path / "m.onnx", f"{body}  y = Add(d, a)")
    made, _ = split(model, "a:tokens=5,7", "c:tokens=4,8")
    onnx.save(made, tmp_path / "split.onnx")
    front = parapipe.map(
        tmp_path / "split.onnx", "amlogic-a311d", interleave="auto", cache=False, jobs=1
    )
    found = [each for each in front if each.kind == "interleaved"]
    assert found
    for each in found:
        plan = each.plan()
        (tmp_path / each.id).mkdir()
        write_session_folder(plan, tmp_path / "split.onnx", tmp_path / each.id)
        folder = open_folder(tmp_path / each.id)
        folder = folder.on_cores({p.name: (ONE,) for p in plan.processors})
        check_results(folder, model, frames_of(30))


def test_a_run_is_written_down_by_the_segments_that_ran_and_compared_with_its_plan(tmp_path):
    model = written(tmp_path / "m.onnx", "a = MatMul(x, w)  b = Softmax<axis=1>(a)  y = Relu(b)")
    path = tmp_path / "split.onnx"
    plan = planned(model, ["a:tokens=5,7"], by_part, path)
    cores = {each.name: (ONE,) for each in plan.processors}
    found = parapipe.run_plan(plan, frames=5, model=path, cores=cores).document
    ran = [operator for task in found.tasks for operator in task.operators]
    assert sorted(ran) == ["a/part0", "a/part1", "b", "y"]
    (tmp_path / "run.json").write_text(found.model_dump_json(by_alias=True))
    (tmp_path / "plan.json").write_bytes(plan.to_bytes())
    compared = parapipe.compare(tmp_path / "plan.json", tmp_path / "run.json")
    assert sum(each.metric == "work of a segment" for each in compared.pairs) == 3
    other = found.model_copy(update={"split": ("a..a:1=6,6",)})
    (tmp_path / "run.json").write_text(other.model_dump_json(by_alias=True))
    with pytest.raises(ComparisonError, match="splits other operators than the run"):
        parapipe.compare(tmp_path / "plan.json", tmp_path / "run.json")


def test_hand_overs_through_what_runs_in_no_session_are_no_time_of_operators(tmp_path):
    body = "a = MatMul(x, w)  b = MatMul(a, v)  y = Softmax<axis=1>(b)"
    model = written(tmp_path / "m.onnx", body)
    path = tmp_path / "split.onnx"
    places = {"a": 1, "b/part1": 1}
    plan = planned(model, ["b:tokens=8,4"], lambda operator: places.get(operator.id, 0), path)
    cores = {each.name: (ONE,) for each in plan.processors}
    found = parapipe.run_plan(plan, frames=5, model=path, cores=cores).document
    assert sum(len(task.operators) for task in found.tasks) == 4
    graph, target = parapipe.load_model(path), parapipe.load_platform("amlogic-a311d")
    kinds = ({"bandwidth_bytes_per_s": 1e15}, {"bandwidth_bytes_per_s": 1e9})
    taken_s = []
    for kind in kinds:
        links = tuple(
            each.model_copy(update={"occupies": "receiver", **kind}) for each in target.links
        )
        platform = target.model_copy(update={"links": links})
        taken_s.append(sum(each.time_s for each in segment_times(found, graph, platform)))
    handed = 8 + 4  # tokens: those that the first part of `b` reads, and those of the second one
    sent_s = handed * CHANNELS * 4 / 1e9
    assert taken_s[0] - taken_s[1] == pytest.approx(sent_s, rel=1e-3)


def test_processors_in_turn_have_a_buffer_for_each_frame_under_way(tmp_path):
    # `y` waits for `s` of the stage before: one session makes the parts, and another reads them
    body = "s = Softmax<axis=1>(x)  a = MatMul(x, w)  y = Add(a, s)"
    model = written(tmp_path / "m.onnx", body)
    folder = exported(
        model, ["a:tokens=5,7"], lambda v: int(v.id != "s"), tmp_path / "out", early=("s",)
    )
    assert "a" in {each.whole for each in folder.views}
    _, own = folder.processors
    turns = (own.name, "other", "third")
    folder = replace(
        folder,
        processors=(folder.processors[0], *(replace(own, name=n, turns=turns) for n in turns)),
    )
    sessions, _ = open_sessions(folder)
    makes, reads = (each for each in folder.segments if each.processor == own.name)
    views, (options, _), frames = Views(folder), stoppable_options(), frames_of(3)
    for at, frame in enumerate(frames):  # all three make their parts before any one is read
        views.run(sessions[own.name, makes.id], makes, at, frame, options)
    for at, frame in enumerate(frames):
        e = np.exp(frame["x"] - frame["x"].max(axis=1, keepdims=True))
        given = {"s": e / e.sum(axis=1, keepdims=True)}
        (y,) = views.run(sessions[own.name, reads.id], reads, at, given, options)
        assert equal(run(model, frame), [y])
    check_results(folder, model, frames_of(20))


def test_ranges_of_a_damaged_folder_are_refused(tmp_path):
    model = written(tmp_path / "m.onnx", "a = MatMul(x, w)  b = Softmax<axis=1>(a)  y = Relu(b)")
    folder = exported(model, ["a:tokens=5,7"], by_part, tmp_path / "out")
    check_views(folder)
    views = {each.tensor: each for each in folder.views}
    part = views["a/part1"]

    def refused(changed, saying):
        with pytest.raises(DamagedError, match=saying):
            check_views(replace(folder, views=(*changed,)))

    rest = [each for each in folder.views if each is not part]
    early = replace(part, begin=part.begin - 8, end=part.end - 8)
    refused([*rest, early], "elements of 'a' are made by several segments")
    refused([*rest, replace(part, end=part.end - 8)], "and they have 56 and 96 elements")
    refused(rest, "no segment makes some of the elements of 'a'")
    beyond = replace(part, begin=part.begin + 8, end=part.end + 8)
    refused([*rest, beyond], "for elements 48 to 104 of 'a', and they have 56 and 96")
    document = json.loads((folder.path / "plan.json").read_text())
    assert document["views"][0].keys() == {"tensor", "whole", "begin", "end"}
