"""Operators on streams take less while other streams do nothing."""

import pytest

import parapipe
from parapipe.errors import SimulationError
from tests.cases.soc_texts import spoil

LAW = 1.5


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    """A GPU with two streams, and nothing else."""
    text = spoil(("    host: cpu\n", f"""    streams:
      {{slowdown: [1, {LAW}], hand_over: {{latency_s: 0}}, source: guess}}
"""))  # fmt: skip
    cpu, gpu, links, sources = map(
        text.index, ("  - name: cpu", "  - name: gpu", "links:", "sources:")
    )
    file = tmp_path_factory.mktemp("soc") / "soc.yaml"
    file.write_text(text[:cpu] + text[gpu:links] + text[sources:])
    return file


@pytest.fixture(scope="module")
def plan(platform):
    """Two stages on the two streams."""
    front = parapipe.map("zoo:squeezenet", platform, mapper="streams", interleave="none")
    row = next(each for each in front.document.configurations if len(each.stages) == 2)
    return front[row.id].plan()


def test_a_frame_by_itself_takes_what_one_operator_at_a_time_takes(plan, platform):
    run = plan.simulate(frames=1, contention=True, platform=platform)
    (frame,) = run.record.frames
    assert frame.done_s == pytest.approx(plan.predicted.latency_s / LAW)


def test_two_streams_that_are_always_at_work_take_what_was_predicted(plan, platform):
    def period_s(**how):
        run = plan.simulate(frames=60, saturate=True, platform=platform, **how)
        return run.document.period.observed_s

    predicted_s = period_s()
    assert predicted_s == pytest.approx(plan.predicted.sustained_period_s)
    assert predicted_s / LAW < period_s(contention=True) <= predicted_s * (1 + 1e-9)


def test_a_platform_that_does_not_know_the_streams_is_refused(plan):
    with pytest.raises(SimulationError, match="does not say what 2 streams of 'gpu' take"):
        plan.simulate(contention=True, platform="amlogic-a311d")
