"""The strategy `streams`: clusters on streams in turn, simulated and on this machine."""

import inspect
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from parapipe.solvers.streams import assign_streams, clusters
from parapipe.strategies import streams
from parapipe.strategies.cut import operators_of
from parapipe.strategies.streams import Streams
from tests.cases.branchy import branchy
from tests.cases.decided import work
from tests.strategies.test_strategies import replayed


class Two(Streams):
    """Clusters of two operators of mean time."""

    most = 2


class Single(Streams):
    most = 0


@pytest.fixture(scope="module")
def plan(branchy_front):
    """Two operators at a time on two processors."""
    return next(each for each in branchy_front if each.kind == "para-only").plan()


# An operator, three branches of two, and their join, as in tests/mapping/streams.
EDGES = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 7), (6, 7)]


def test_tasks_run_on_their_stream_in_turn_older_frames_first():
    todo = work([[1.0, 1.0]] * 8, EDGES, [range(8), ()])
    spans, _ = replayed(todo, "streams", frames=2)
    stream = dict(zip(todo.tasks, assign_streams(todo.readers, 2), strict=True))
    assert stream == {"a": 0, "b": 1, "c": 0, "d": 1, "e": 0, "f": 1, "g": 0, "h": 1}
    assert all("pq".index(span.resource) == stream[name] for (name, _), span in spans.items())
    # a | b d f h and c e g side by side: 1 + 3 + 1 s
    assert spans["h", 0].end_s == 5.0


def test_what_its_stream_cannot_run_goes_where_it_is_fastest():
    todo = work([[1.0, 1.0, 1.0], [4.0, inf, 2.0]], [(0, 1)], [(0,), (), (1,)])
    assert assign_streams(todo.readers, 3) == (0, 1)
    spans, _ = replayed(todo, "streams", frames=1)
    assert spans["b", 0].resource == "r"


def test_pieces_are_the_clusters_of_the_network_cut_where_the_plan_changes_processors(plan):
    found = operators_of(plan)
    number = {each.id: v for v, each in enumerate(found)}
    readers = [{number[o.id] for o in found if each.id in o.reads} for each in found]
    wanted = clusters([round(each.time_s * 1e9) for each in found], readers, 2)
    names = Two.cut(found)
    assert set(names) == set(number)
    for c, cluster in enumerate(wanted):
        runs = [names[found[v].id] for v in cluster]
        assert {name.partition(".")[0] for name in runs} == {f"cluster {c}"}
        for one, other in pairwise(cluster):
            same = found[one].processor == found[other].processor
            assert same == (names[found[one].id] == names[found[other].id])
    assert len(set(Single.cut(found).values())) == len(found)


@pytest.mark.parametrize("strategy", [Two, Single, Streams])
def test_a_simulation_runs_each_operator_once_a_frame(plan, strategy):
    run = plan.simulate(strategy=strategy, frames=5)
    tasks = run.document.tasks
    ran = [operator for task in tasks for operator in task.operators]
    assert sorted(ran) == sorted(each.id for each in plan.operators)
    assert len(run.record.spans) == 5 * len(tasks)


def test_results_on_this_machine_are_those_of_one_session(plan, tmp_path):
    import onnxruntime as ort

    model = branchy(tmp_path / "branchy.onnx")
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    shapes = {each.name: each.shape for each in session.get_inputs()}
    draw = np.random.default_rng(0)
    given = {name: draw.random((10, *shape), np.float32) for name, shape in shapes.items()}
    frames, kept = tmp_path / "frames.npz", tmp_path / "kept.npz"
    np.savez(frames, **given)
    cores = {each.name: (0,) for each in plan.processors}
    plan.run(model=model, strategy=Two, cores=cores, input=frames, keep=kept, saturate=True)
    names = [each.name for each in session.get_outputs()]
    with np.load(kept) as found:
        for n in range(10):
            wanted = session.run(names, {name: array[n] for name, array in given.items()})
            for name, array in zip(names, wanted, strict=True):
                np.testing.assert_allclose(found[name][n], array, rtol=1e-4, atol=1e-5)


def test_it_is_at_most_40_lines_besides_the_two_algorithms():
    source = inspect.getsource(streams.Streams).splitlines()
    assert len([line for line in source if line.strip()]) <= 40
