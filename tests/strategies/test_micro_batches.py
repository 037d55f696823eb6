"""Batches split into micro-batches: results of whole batches, and no split that does not pay."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import parapipe
from benchmarks.open_batch import write_open
from parapipe.errors import StrategyError
from parapipe.plan.summary import Batches
from parapipe.simulate.strategies import Arrivals, strategy_replay
from parapipe.strategies.folder_work import Slices
from parapipe.strategies.micro_batches import MicroBatches, forecast_s
from parapipe.strategies.order_of_plan import ReadyPool
from parapipe.strategies.state import State
from parapipe.strategies.work import Job, MicroBatch, Order, Tensor, Work
from tests.cases.hand_made import Piece, folder_of, node

PACED = Arrivals(100.0, 2)
BATCH = 5


def chain(whole_s, half_s, *, tasks=2, batch=2, cores=2):
    """A chain of equal tasks on equal cores, and what one takes for a batch, and for one item."""
    still = tuple((0.0,) * cores for _ in range(cores))
    return Work(
        processors=tuple("pqrs"[:cores]),
        tasks=tuple("abcd"[:tasks]),
        time_s=((whole_s,) * cores,) * tasks,
        tensors=tuple(Tensor(v, still, (batch, 3)) for v in range(tasks - 1)),
        reads=tuple((v - 1,) if v else () for v in range(tasks)),
        room=tuple((v, v + 1, 2) for v in range(tasks - 1)),
        orders=(Order(tuple(range(tasks)), (0,)), *(Order((), (p,)) for p in range(1, cores))),
        lag=(0,) * tasks,
        first=frozenset({0}),
        batch=batch,
        sized_s={1: ((half_s,) * cores,) * tasks},
    )


class Always(MicroBatches):
    """Splits every batch in halves."""

    def schedule(self, state):
        for frame in tuple(state.waiting):
            state.split(self._splits[0], frame)
        super().schedule(state)


class Never(MicroBatches):
    """Splits no batch."""

    @staticmethod
    def splits(batch):
        return []


class Merging(ReadyPool):
    """Splits every batch in three; the first task is run apart, all behind it on them together."""

    @staticmethod
    def splits(batch):
        return [[batch - 2, 1, 1]]

    def schedule(self, state):
        for frame in tuple(state.waiting):
            state.split(self.splits(self._work.batch)[0], frame)
        for processor in state.free:
            for job in state.ready():
                if job.task == 0:
                    state.execute(job, on=processor)
                    break
                several = [Job(job.task, job.frame, micro) for micro in range(3)]
                if state.ready_by.keys() >= set(several):
                    state.execute(several, on=processor)
                    break


class PairFirst(Merging):
    """As above, the last two of the three together and the first apart."""

    def schedule(self, state):
        for frame in tuple(state.waiting):
            state.split(self.splits(self._work.batch)[0], frame)
        for processor in state.free:
            for job in state.ready():
                pair = [Job(job.task, job.frame, 1), Job(job.task, job.frame, 2)]
                if job.task and job.micro and not state.ready_by.keys() >= set(pair):
                    continue
                state.execute(pair if job.task and job.micro else job, on=processor)
                break


def ends(work, strategy, frames=1, arrivals=PACED):
    spans, passed = strategy_replay(work, strategy, "it", frames, arrivals)
    return [each.done_s - each.admitted_s for each in passed], spans


@pytest.mark.parametrize(
    ("half_s", "takes_s", "pieces"),
    [(5.0, 10.0, 4), (9.0, 18.0, 4), (9.8, 20.0, 2), (12.0, 20.0, 2)],
)  # fmt: skip
def test_a_batch_is_split_only_where_that_pays(half_s, takes_s, pieces):
    # Whole: 10 s for each of two tasks. Halves overlap on two cores. 2 % are not worth it.
    (found_s,), spans = ends(chain(10.0, half_s), MicroBatches)
    assert found_s == pytest.approx(takes_s)
    assert len(spans) == pieces


def test_no_batch_is_split_where_another_frame_keeps_the_other_core_busy():
    work = chain(10.0, 6.0, tasks=1)
    _, alone = ends(work, MicroBatches)
    _, many = ends(work, MicroBatches, 10, Arrivals(None, 4))
    assert len(alone) == 2
    assert len(many) < 13  # a first or last one finds a core idle
    _, always = ends(work, Always, 10, Arrivals(None, 4))
    assert max(s.end_s for s in many) == 50 < max(s.end_s for s in always) == 60


@pytest.mark.parametrize(
    ("half_s", "split", "takes_s"),
    [(4.5, True, 45.0), (4.9, False, 50.0), (5.0, False, 50.0), (6.0, False, 50.0)],
)
def test_where_batches_overlap_anyway_they_are_split_only_if_that_is_less_work(
    half_s, split, takes_s
):
    # 10 batches of 10 s on two cores, one after the other; 2 % less are not worth it.
    _, spans = ends(chain(10.0, half_s, tasks=1), MicroBatches, 10, Arrivals(None, 4))
    pieces = [sum(each.frame == frame for each in spans) for frame in range(1, 9)]
    assert pieces == [2 if split else 1] * 8
    assert max(each.end_s for each in spans) <= takes_s


@pytest.mark.parametrize("queue", [2, 3, 4])
def test_of_many_batches_deciding_loses_nothing_against_never_and_always(queue):
    arrivals = Arrivals(None, queue)
    for half_s in (4.0, 4.8, 5.0, 5.2, 7.0, 10.0, 12.0):
        work = chain(10.0, half_s, tasks=3)
        decided, never, always = (
            max(each.end_s for each in ends(work, strategy, 12, arrivals)[1])
            for strategy in (MicroBatches, Never, Always)
        )
        assert decided <= 1.03 * min(never, always)


def test_a_single_item_is_not_split():
    assert MicroBatches.splits(1) == []
    assert MicroBatches.splits(5) == [[3, 2]]


def test_what_is_forecast_is_what_happens():
    for half_s in (5.0, 9.0):
        work = chain(10.0, half_s, tasks=3)
        state = State(work, follows_plan=False)
        state.admitted = 1
        state.waiting[0] = None
        assert forecast_s(state, 0, [1, 1]) == ends(work, Always)[0][0] == 3 * half_s
        assert forecast_s(state, 0, [2]) == 30


@pytest.mark.parametrize(
    ("sizes", "words"),
    [([1, 2], "add up"), ([3], "add up"), ([], "add up")],
)
def test_sizes_that_make_no_batch_are_refused(sizes, words):
    class Wrong(MicroBatches):
        def schedule(self, state):
            state.split(sizes)

    with pytest.raises(StrategyError, match=words):
        ends(chain(1.0, 1.0), Wrong)


def test_a_frame_is_split_once_and_before_it_begins():
    class Twice(MicroBatches):
        def schedule(self, state):
            assert state.split([1, 1]) == (MicroBatch(0, 0), MicroBatch(0, 1))
            assert [state.ready(i) for i in ((0, 0), (0, 1))] == [[Job(0, 0, 0)], [Job(0, 0, 1)]]
            state.split([1, 1], 0)

    with pytest.raises(StrategyError, match=r"^strategy 'it': frame 0 is split too late"):
        ends(chain(1.0, 1.0), Twice)


def test_micro_batches_that_are_no_neighbours_are_not_merged():
    class Apart(Merging):
        def schedule(self, state):
            state.split([1, 1, 1])
            state.execute([Job(0, 0, 0), Job(0, 0, 2)], on=0)

    work = chain(1.0, 1.0, batch=3)
    with pytest.raises(StrategyError, match="cannot do now"):
        ends(work, Apart)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_open("squeezenet", tmp_path_factory.mktemp("open") / "squeezenet.onnx")


@pytest.fixture(scope="module")
def plan(model):
    front = parapipe.map(
        model, "amlogic-a311d", dims={"batch": BATCH}, mapper="heft_cpop", interleave="none",
        objectives="latency-throughput", cache=False,
    )  # fmt: skip
    return front.best("period").plan()


@pytest.fixture(scope="module")
def given(plan, tmp_path_factory):
    file = tmp_path_factory.mktemp("frames") / "frames.npz"
    draw = np.random.default_rng(0)
    np.savez(file, data=draw.random((6, *plan.tensors["data"].shape), np.float32))
    return file


@pytest.mark.parametrize(
    "case",
    [
        (Always, "segment", 2), (Always, "operator", 2), (Merging, "operator", None),
        (PairFirst, "segment", None), (MicroBatches, "segment", None), ("ready-pool", "segment", 1),
    ],
)  # fmt: skip
def test_split_batches_give_what_one_session_gives(model, plan, given, case, tmp_path):
    strategy, unit, spans = case
    cores = {each.name: (0,) for each in plan.processors}
    run = plan.run(
        strategy=strategy, unit=unit, cores=cores, input=given, saturate=True,
        keep=tmp_path / "out.npz",
    )  # fmt: skip
    whole = ort.InferenceSession(str(model))
    name = whole.get_outputs()[0].name
    found = np.load(tmp_path / "out.npz")[name]
    for frame, data in enumerate(np.load(given)["data"]):
        np.testing.assert_allclose(found[frame], whole.run(None, {"data": data})[0], rtol=1e-4)
    assert spans is None or len(run.record.spans) == 6 * spans * len(run.document.tasks)
    assert all(task.observed_s > 0 for task in run.document.tasks)


def test_a_split_batch_is_simulated_with_the_prices_of_its_halves(plan, model):
    run = plan.simulate(strategy=Always, frames=4, saturate=True)
    assert len(run.record.spans) == 4 * 2 * len(run.document.tasks)
    batches = Batches(plan, model)
    assert batches.size == BATCH
    assert batches.plan_of(2).tensors["data"].shape == (2, *plan.tensors["data"].shape[1:])


def test_tensors_whose_outermost_axis_is_not_the_batch_are_named(tmp_path):
    folders = {}
    for size in (2, 4):
        pieces = [
            Piece("00-a", "a", [node("Transpose", "x", "t")], ["x"], ["t"]),
            Piece("01-b", "b", [node("Transpose", "t", "y")], ["t"], ["y"], 1),
        ]
        shapes = {"x": [size, 3], "t": [3, size], "y": [size, 3]}
        folders[size] = folder_of(
            tmp_path / str(size), pieces, inputs=["x"], outputs=["y"], shapes=shapes
        )
    with pytest.raises(Exception, match=r"these are not: 't' \(float32\[3,2\] of a batch of 2"):
        Slices(folders[4], 4, {2: folders[2]})
