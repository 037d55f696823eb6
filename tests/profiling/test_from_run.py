"""What operators took in a run of a plan, taken into a profile."""

import json
from dataclasses import replace

import pytest

import parapipe
from parapipe.cost.profile import read_profile
from parapipe.documents.compared_runs import segment_times
from parapipe.errors import ComparisonError, ProfilingError
from parapipe.profiling.detect import MachineFigures, clusters_here, platform_text
from parapipe.profiling.figures import Figures
from parapipe.profiling.from_run import SegmentTime, measurements_of
from parapipe.profiling.identical_figures import HandOver
from parapipe.profiling.single_models import distinct_units, unit_key
from parapipe.runtime.record import Span
from parapipe.runtime.typical_times import typical_times
from tests.cases.small_network import saved

FIGURES = Figures({"float32": 2e10, "int32": 3e9}, 1e-6, 8e9, 2e-5)
PARTS = 2


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The small network, a platform of this machine's cores, and a front of both."""
    folder = tmp_path_factory.mktemp("here")
    clusters = clusters_here(split=PARTS)[:PARTS]
    pairs = {
        (p, q): HandOver(1e-5, 1e12, 0.1) for p in range(PARTS) for q in range(PARTS) if p != q
    }
    platform = folder / "here.yaml"
    measured = MachineFigures((FIGURES,) * len(clusters), pairs, {})
    platform.write_text(platform_text("here", clusters, measured))
    model = saved(folder)
    front = parapipe.map(model, platform, cache=False, jobs=1, note=lambda _note: None)
    return model, platform, front


def segment(operators, predicted_s, time_s, **changes):
    known = SegmentTime("cpu0", (0,), operators, predicted_s, time_s, 0.1, False)
    return replace(known, **changes)


@pytest.fixture
def graph_and_platform(here):
    model, platform, _ = here
    target = parapipe.load_platform(platform)
    return parapipe.load_model(model), target, target.processors[0].cores


def test_a_segment_is_shared_out_as_predicted_and_one_operator_gets_all(graph_and_platform):
    graph, platform, cores = graph_and_platform
    (one, *_), (two, *_), (three, *_), *_ = (
        [each.id for each in graph.operators if each.members == unit.operator.members]
        for unit in distinct_units(graph)
    )
    found = list(
        measurements_of(
            [
                segment((one, two), (3e-3, 1e-3), 8e-3, cores=cores),
                segment((three,), (7.0,), 2e-3, cores=cores, noisy=True),
            ],
            graph,
            platform,
        )
    )
    first, *others = platform.names  # cores of one cluster: what one took, the others take
    found_on = {name: [m for m in found if m.processor == name] for name in platform.names}
    assert [m.time_s for m in found_on[first]] == pytest.approx([6e-3, 2e-3, 2e-3])
    assert [m.noisy for m in found_on[first]] == [False, False, True]
    assert {(m.method, m.rows, m.spread) for m in found} == {("run", 1, 0.1)}
    for name in others:
        assert [replace(m, processor=first) for m in found_on[name]] == found_on[first]
    units = {unit.key: unit for unit in distinct_units(graph)}
    assert all(units[m.signature, m.then].macs == m.macs for m in found)


def test_of_equal_operators_the_mean_counts(graph_and_platform):
    graph, platform, cores = graph_and_platform
    (twice,) = (unit for unit in distinct_units(graph) if unit.count == 2)
    known = [each.id for each in graph.operators if unit_key(each, graph) == twice.key]
    segments = [
        segment((name,), (1e-3,), time_s, cores=cores)
        for name, times_s in zip(known, ([1e-3, 2e-3, 9e-3], [6e-3]), strict=True)
        for time_s in times_s
    ]
    found = {(m.signature, m.then): m for m in measurements_of(segments, graph, platform)}
    m = found[twice.key]
    assert m.time_s == pytest.approx(4e-3)  # the mean of the medians, 2 and 6 ms
    assert (m.rows, m.spread) == (1, 0.1)  # each ran in one segment; as far as its frames


def test_the_spread_is_how_far_the_segments_of_an_operator_lie_apart(graph_and_platform):
    graph, platform, cores = graph_and_platform
    one, two, *_ = (unit.operator.id for unit in distinct_units(graph) if unit.count == 1)
    found = measurements_of(
        [
            *(segment((one,), (1e-3,), time_s, cores=cores) for time_s in (1e-3, 3e-3, 2e-3)),
            *(segment((one, two), (1e-3, 1e-3), time_s, cores=cores) for time_s in (2e-3, 6e-3)),
        ],
        graph,
        platform,
    )
    m = next(iter(found))
    # 1, 2 and 3 ms alone and 1 and 3 ms in the other segment: medians of 2 ms.
    assert (m.time_s, m.rows, m.spread) == (2e-3, 2, 0.0)


def test_a_run_elsewhere_or_of_other_operators_teaches_nothing(graph_and_platform):
    graph, platform, cores = graph_and_platform
    name = graph.operators[0].id
    for wrong, told in (
        (segment((name,), (1.0,), 1.0, cores=(4000,)), "'cpu0' ran on cores [4000], and has"),
        (segment((name,), (1.0,), 1.0, processor="gpu"), "has no processor 'gpu'"),
        (segment(("odd",), (1.0,), 1.0, cores=cores), "operators that the model has not (odd)"),
    ):
        with pytest.raises(ProfilingError) as caught:
            list(measurements_of([wrong], graph, platform))
        assert told in str(caught.value)


def test_the_bytes_of_hand_overs_are_no_time_of_operators(here):
    model, platform, front = here
    graph = parapipe.load_model(model)
    plan = front["pipe-only"].plan()
    run = plan.run(frames=8, saturate=True).document
    free = parapipe.load_platform(platform)
    places = {name: task.resource for task in run.tasks for name in task.operators}
    sent_bytes = sum(
        graph.tensors[tensor].size_bytes
        for tensor, u in graph.producer.items()
        for target in {places[graph.operators[v].id] for v in graph.consumers.get(tensor, ())}
        if target != places[graph.operators[u].id]
    )
    # all bytes together take a tenth of the shortest segment: hand-overs may take half of one
    sent_s = min(task.own.time_s for task in run.tasks if task.own) / 10
    rate = {"bandwidth_bytes_per_s": sent_bytes / sent_s}
    slow = free.model_copy(
        update={"links": tuple(each.model_copy(update=rate) for each in free.links)}
    )
    taken = [sum(each.time_s for each in segment_times(run, graph, p)) for p in (free, slow)]
    assert sent_bytes > 0
    own_s = sum(task.own.time_s for task in run.tasks if task.own)
    assert taken[0] == pytest.approx(own_s, rel=1e-3)
    assert taken[1] == pytest.approx(own_s - sent_s, rel=1e-6)


@pytest.fixture(scope="module")
def run_file(here, tmp_path_factory):
    """The document of a run of the plan on one core."""
    _, _, front = here
    path = tmp_path_factory.mktemp("run") / "run.json"
    plan = front["sequential"].plan()
    path.write_text(json.dumps(parapipe.run_plan(plan, frames=20, saturate=True).to_json()))
    return path


def test_what_was_learned_is_what_the_same_plan_is_priced_with(here, run_file, tmp_path):
    model, platform, front = here
    out = tmp_path / "learned.csv"
    report = parapipe.learn_from_runs(model, platform, run_file, out=out)
    rows = read_profile(out).measurements
    run = json.loads(run_file.read_text())
    (used,) = {task["resource"] for task in run["tasks"]}
    assert report.measured == len(rows) > 0
    assert {m.method for m in rows} == {"run"}
    again = parapipe.map(
        model, platform, profiles=[out], cache=False, jobs=1, note=lambda _note: None
    )
    own_s = sum(task["own"]["time_s"] for task in run["tasks"])
    priced = again[f"{used}-alone"].latency_s
    # Equal operators share a median, and views have no time of their own.
    assert priced == pytest.approx(own_s, rel=0.25)
    assert abs(priced - own_s) < abs(front[f"{used}-alone"].latency_s - own_s)
    told = again.to_json()["coverage"]
    assert told["processors"][used]["measured"] == 1.0


def test_other_documents_are_refused_in_one_line(here, run_file, tmp_path):
    model, platform, _ = here
    changed = tmp_path / "changed.json"
    for change, told in (
        ({"model_sha256": "0" * 64}, "is a run of another model"),
        ({"platform": "board"}, "ran a plan for platform 'board', not for 'here'"),
        ({"machine": None}, "is a simulation"),
    ):
        changed.write_text(json.dumps(json.loads(run_file.read_text()) | change))
        with pytest.raises(ProfilingError, match=told):
            parapipe.learn_from_runs(model, platform, [run_file, changed], out=tmp_path / "no.csv")
    changed.write_text("{}")
    with pytest.raises(ComparisonError, match="names no schema"):
        parapipe.learn_from_runs(model, platform, changed, out=tmp_path / "no.csv")
    assert not (tmp_path / "no.csv").exists()


def frames_of(*times_s):
    """Spans of frames of a Conv, an Add that it includes, and a Gemm: what each takes and waits."""
    spans, now_s = [], 0.0
    for frame, (before_s, conv_s, gemm_s) in enumerate(times_s):
        begin_s = now_s + before_s
        now_s = begin_s + conv_s
        spans.append(Span("cpu0", "conv", frame, begin_s, now_s, conv_s))
        spans.append(Span("cpu0", "add", frame, now_s, now_s, 0.0))
        spans.append(Span("cpu0", "gemm", frame, now_s, now_s + gemm_s, gemm_s))
        now_s += gemm_s
    return spans


def test_times_of_a_usual_frame_are_from_end_to_end_and_add_up_to_it():
    # the first frame has none before it; of the others, 10 and 30 are not in the middle half
    found = typical_times(frames_of((9, 9, 9), (1, 4, 5), (1, 10, 5), (3, 4, 7), (1, 9, 20)))
    assert found == {"conv": pytest.approx((11 + 7) / 2), "gemm": 6, "add": 1e-9}
    assert sum(found.values()) == pytest.approx((16 + 14) / 2)


def test_medians_of_operators_would_be_less_than_the_frames_they_are_in():
    late = [(0, 5, 1), (0, 1, 5), (0, 1, 1), (0, 5, 1), (0, 1, 5)]  # either is late, seldom both
    assert sum(typical_times(frames_of(*late)).values()) == pytest.approx(6)


def test_two_frames_are_enough_for_times_of_a_usual_one():
    assert typical_times(frames_of((0, 1, 1), (1, 2, 3)))["conv"] == 3
