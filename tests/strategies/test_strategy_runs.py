"""Strategies on ONNX Runtime: results of one session, in order, and runs that end as others do."""

import os
import random
import re
import threading
from dataclasses import asdict
from itertools import pairwise
from time import sleep

import numpy as np
import pytest

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.runtime.folder import RunError, open_folder
from parapipe.strategies.order_of_plan import ReadyPool
from parapipe.strategies.registry import STRATEGIES, strategy
from parapipe.strategies.strategy_executor import StrategyExecutor
from parapipe.zoo.registry import write
from tests.cases.faulty import ENDLESS, faulty, frame, result
from tests.cases.hand_made import hybrid
from tests.cases.session_runs import assert_equal
from tests.cases.session_runs import frame as drawn
from tests.cases.split_models import MODELS, placed_plan, random_plan, written
from tests.cases.split_runs import equal, run
from tests.runtime.test_faults import FAULTS, given, own_threads, resident_bytes
from tests.runtime.test_replicated_runs import replicated
from tests.runtime.test_same_results import whole_results
from tests.runtime.test_views import by_part, exported, frames_of
from tests.runtime.test_views import written as tokens

ONE = min(os.sched_getaffinity(0))
CORES = dict.fromkeys("abc", (ONE,))
NAMES = STRATEGIES.names()


def executor_of(folder, name, **options):
    return StrategyExecutor(folder, strategy(name)[1], name, **options)


def frames(count):
    return ({"x": np.full((2, 3), n, np.float32)} for n in range(count))


@pytest.fixture(scope="module", params=NAMES)
def broken(request, tmp_path_factory):
    executor = executor_of(faulty(tmp_path_factory.mktemp("f"), cores=CORES), request.param)
    executor.measure(frame(n) for n in range(2))
    return executor


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counts", [{}, {"a": 2}, {"a": 2, "b": 3}])
@pytest.mark.parametrize("queue", [None, 2, 5])
def test_results_come_in_order(tmp_path, name, counts, queue):
    folder = replicated(hybrid(tmp_path / "folder", cores=CORES), **counts)
    executor = executor_of(folder, name, queue=queue)
    executor.measure(frames(2))
    results = list(executor.run(frames(100)))
    assert [each["y"][0, 0] for each in results] == [11 * (n + 1) for n in range(100)]
    spans = executor.record.spans
    assert len({(s.name, s.frame) for s in spans}) == len(spans) == 100 * len(folder.segments)
    for processor in folder.processors:
        mine = [span for span in spans if span.resource == processor.name]
        assert all(one.end_s <= other.start_s for one, other in pairwise(mine))
    assert own_threads() == []


@pytest.mark.parametrize("name", NAMES)
def test_a_caller_that_is_slow_is_waited_for(tmp_path, name):
    executor = executor_of(hybrid(tmp_path, cores=CORES), name)
    taken = 0
    given_out = []

    def counted():
        for number, each in enumerate(frames(40)):
            given_out.append(number - taken)
            yield each

    for _ in executor.run(counted()):
        threading.Event().wait(0.002)
        taken += 1
    # Those on their way, those that wait for admission, and those whose results wait.
    assert max(given_out) <= 12


def test_other_processors_than_the_plans_run_segments(tmp_path):
    executor = executor_of(hybrid(tmp_path, cores=CORES), "ready-pool")
    executor.measure(frames(2))
    assert len(list(executor.run(frames(200)))) == 200
    ran = {(span.name, span.resource) for span in executor.record.spans}
    assert len(ran) > len(executor.folder.segments)


def test_of_runs_with_random_faults_none_hangs_or_loses_a_frame(broken):
    draw = random.Random(0)
    for number in range(60):
        kind = draw.choice(sorted(FAULTS))
        fault, cause = FAULTS[kind]
        at, count = draw.randrange(12), 12 + draw.randrange(5)
        results = []
        with pytest.raises(RunError) as caught:
            results.extend(broken.run(given(fault, at, count), period_s=draw.choice([None, 1e-3])))
        assert [each["y"][0, 0] for each in results] == [result(n) for n in range(at)], (
            number,
            kind,
        )
        anyone = re.compile(r"processor '\w'")  # may have run it
        message = anyone.sub("someone", str(caught.value))
        assert message.startswith(anyone.sub("someone", cause.format(n=at))), (number, kind)
        assert own_threads() == []


def test_after_a_fault_the_same_sessions_run_again(broken):
    results = list(broken.run(frame(n) for n in range(9)))
    assert [each["y"][0, 0] for each in results] == [result(n) for n in range(9)]


@pytest.mark.parametrize("name", NAMES)
def test_a_session_that_does_not_end_is_given_up_and_named(tmp_path, name):
    executor = executor_of(faulty(tmp_path, cores=CORES), name, patience_s=0.5)
    results = []
    with pytest.raises(RunError, match=r"segment '01-b' on processor '\w', frame 5: does not end"):
        results.extend(executor.run(given(lambda n: frame(n, trips=ENDLESS), 5, 20)))
    # frames before it may wait for the processor that it keeps
    assert [each["y"][0, 0] for each in results] == [result(n) for n in range(len(results))]
    assert len(results) == 5 or (name != "plan" and len(results) < 5)
    assert own_threads() == []


def test_what_fails_or_does_not_end_while_it_is_measured_is_named(tmp_path):
    executor = executor_of(faulty(tmp_path, cores=CORES), "steal", patience_s=0.5)
    with pytest.raises(RunError, match=r"^segment '00-a' on processor 'a', frame 0: "):
        executor.measure([frame(0, rows_a=(0, 7))])
    with pytest.raises(RunError, match=r"^segment '01-b' on processor 'a', frame 0: does not end"):
        executor.measure([frame(0, trips=ENDLESS)])
    with pytest.raises(RunError, match=r"^frame 0: has no input 'rows_a'"):
        executor.measure([{"x": frame(0)["x"]}])


@pytest.mark.parametrize("at", [0, 3])
def test_a_strategy_that_fails_ends_the_run_with_its_reason(tmp_path, at):
    class Failing:
        follows_plan = False

        def __init__(self, work):
            pass

        def schedule(self, state):
            if any(job.frame == at for job in state.ready()):
                raise ZeroDivisionError("nothing is left")
            for processor, job in zip(state.free, state.ready(), strict=False):
                state.execute(job, on=processor)

    executor = StrategyExecutor(hybrid(tmp_path, cores=CORES), Failing, "mine:Failing")
    with pytest.raises(RunError) as caught:
        list(executor.run(frames(20)))
    assert str(caught.value) == (
        "strategy 'mine:Failing' has failed: ZeroDivisionError: nothing is left"
    )
    assert own_threads() == []


def end_threads(returns):
    """Let a strategy return at last, so that no thread stays."""
    returns.set()
    for thread in threading.enumerate():
        if thread.name.startswith("parapipe"):
            thread.join(60)
    assert own_threads() == []


@pytest.mark.parametrize("at", [0, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_strategy_that_does_not_return_is_given_up(tmp_path, at):
    returns = threading.Event()

    class Endless(ReadyPool):
        def schedule(self, state):
            if any(job.frame == at for job in state.ready()):
                returns.wait()
            super().schedule(state)

    executor = StrategyExecutor(
        hybrid(tmp_path, cores=CORES), Endless, "mine:Endless", patience_s=0.5
    )
    with pytest.raises(RunError, match=r"^strategy 'mine:Endless' does not return \(asked \d"):
        list(executor.run(frames(20)))
    assert executor.stuck  # whose threads wait for it
    end_threads(returns)
    assert [each["y"][0, 0] for each in executor.run(frames(9))] == [*range(11, 110, 11)]


@pytest.mark.nightly
def test_nor_is_a_result_waited_for_that_cannot_be_taken_any_more(tmp_path):
    waits, returns = threading.Event(), threading.Event()

    class Endless(ReadyPool):
        def schedule(self, state):
            if waits.is_set():
                returns.wait()
            super().schedule(state)

    executor = StrategyExecutor(
        hybrid(tmp_path, cores=CORES), Endless, "mine:Endless", patience_s=0.5
    )
    run = executor.run(frames(50))
    next(run)
    sleep(0.2)  # meanwhile, more frames get through
    waits.set()
    next(run)  # now there is room for one more, so the strategy is asked
    sleep(0.2)
    with pytest.raises(RunError, match=r"^strategy 'mine:Endless' does not return"):
        next(run)
    assert executor.stuck
    end_threads(returns)


def test_neither_who_admits_frames_nor_who_takes_results_asks_the_strategy(tmp_path):
    asked_by = set()

    class Watched(ReadyPool):
        def schedule(self, state):
            asked_by.add(threading.current_thread().name)
            super().schedule(state)

    folder = hybrid(tmp_path, cores=CORES)
    run = StrategyExecutor(folder, Watched, "mine:Watched").run(frames(20), period_s=1e-3)
    assert len(list(run)) == 20
    assert asked_by <= {f"parapipe {each.name}" for each in folder.processors}


def test_a_caller_that_has_enough_ends_the_run(tmp_path):
    run = executor_of(hybrid(tmp_path, cores=CORES), "steal").run(frames(10_000))
    assert [next(run)["y"][0, 0] for _ in range(3)] == [11, 22, 33]
    run.close()
    assert own_threads() == []


def on_this_machine(place):
    folder = open_folder(place)
    lent = sorted(os.sched_getaffinity(0))
    return folder.on_cores(
        {each.name: (lent[at % len(lent)],) for at, each in enumerate(folder.processors)}
    )


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("name", "seed"), [("steal", 0), ("ready-pool", 1)])
def test_any_split_of_any_model_gives_what_one_session_gives(model, seed, name, single, tmp_path):
    path = written(MODELS[model](), tmp_path)
    shapes = {"unused": (3, 7)} if model == "many_inputs" else None
    place = tmp_path / "out"
    place.mkdir()
    plan = random_plan(path, seed, shapes=shapes)
    told = asdict(write_session_folder(plan, path, place, single=single))
    if single:
        assert {len(segment["operators"]) for segment in told["segments"]} == {1}
    given_in = [drawn(told, number) for number in range(20)]
    executor = executor_of(on_this_machine(place), name)
    executor.measure(given_in[:1])
    found = list(executor.run(given_in))
    assert len(found) == len(given_in)
    for one, other in zip(found, whole_results(path, given_in, list(found[0])), strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize("queue", [None, 4])
@pytest.mark.parametrize("name", NAMES)
def test_parts_in_one_buffer_are_whole_whoever_makes_them(name, queue, tmp_path):
    body = "a = MatMul(x, w)  b = Softmax<axis=1>(a)  c = MatMul(b, v)  y = Softmax<axis=1>(c)"
    model = tokens(tmp_path / "m.onnx", body)
    folder = exported(model, ["a:tokens=5,7", "c:tokens=4,8"], by_part, tmp_path / "out")
    assert {"a", "c"} <= {each.whole for each in folder.views}
    executor = executor_of(folder, name, queue=queue)
    given_in = frames_of(100)
    executor.measure(given_in[:1])
    for feeds, made in zip(given_in, executor.run(given_in), strict=True):
        assert equal(run(model, feeds), [made["y"]])


def session_folder(name, tmp_path):
    """A model of the zoo, and its operators in turns on two processors."""
    path = tmp_path / "model.onnx"
    write(name, path)
    place = tmp_path / "out"
    place.mkdir()
    plan = placed_plan(path, lambda v, _: (0, v % 2))
    return path, place, asdict(write_session_folder(plan, path, place))


# Below 15 GMACs.
BELOW = (
    *("alexnet", "bert-base", "densenet-121", "googlenet", "inception-resnet-v2", "inception-v3"),
    *("inception-v4", "mobilenet-v1", "mobilenet-v2", "resnet-50", "squeezenet", "yolo-pan"),
)
ZOO = [
    ("squeezenet", 8),
    pytest.param("mobilenet-v2", 8, marks=pytest.mark.nightly),
    *(pytest.param(name, 50, marks=pytest.mark.nightly) for name in BELOW),
]


@pytest.mark.parametrize(("model", "frames"), ZOO)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "plan"])
def test_models_of_the_zoo_give_what_one_session_gives(model, frames, name, tmp_path):
    path, place, told = session_folder(model, tmp_path)
    given_in = [drawn(told, number) for number in range(frames)]
    executor = executor_of(on_this_machine(place), name)
    executor.measure(given_in[:1])
    found = list(executor.run(given_in))
    assert len(found) == len(given_in)
    for one, other in zip(found, whole_results(path, given_in, list(found[0])), strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_memory_does_not_grow_over_1000_frames(tmp_path, name):
    executor = executor_of(hybrid(tmp_path, cores=CORES, shape=(64, 1024)), name)
    given_in = ({"x": np.full((64, 1024), number, np.float32)} for number in range(1000))
    resident = []
    for number, _ in enumerate(executor.run(given_in)):
        if number in (200, 999):
            resident.append(resident_bytes())
    # One tensor of each of these 799 frames would be 209 MB.
    assert resident[1] - resident[0] < 20e6


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_memory_does_not_grow_over_1000_frames_of_a_network(tmp_path, name):
    _, place, told = session_folder("mobilenet-v1", tmp_path)
    executor = executor_of(on_this_machine(place), name)
    given_in = [drawn(told, number) for number in range(4)]
    resident = []
    for number, _ in enumerate(executor.run(given_in[n % 4] for n in range(1000))):
        if number in (200, 999):
            resident.append(resident_bytes())
    # The largest tensor of each of these 799 frames would be 2.6 GB.
    assert resident[1] - resident[0] < 40e6
