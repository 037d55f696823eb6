"""The verifier accepts valid plans, names all violations at once, and checks the predictions."""

import contextlib
import copy
import json
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.plan.verify import verify_plan
from tests.cases.plan_cases import random_case
from tests.cases.plan_changes import DRAWN, found_after, place, violations


def test_a_valid_plan_breaks_no_rule() -> None:
    assert found_after(lambda document: None) == []


def test_the_error_names_model_and_platform_and_lists_all_violations_in_the_traceback() -> None:
    document = copy.deepcopy(DRAWN)
    document["predicted"] |= {"latency_s": 1.0, "board_energy_j": 0.25}
    with pytest.raises(VerificationError) as caught:
        verify_plan(Plan.model_validate_json(json.dumps(document)))
    assert str(caught.value).startswith("the plan of 'nets/small.onnx' for 'board' breaks 2 rules")
    assert caught.value.violations == (
        "the latency is 1 s, and the stages take 5.25 s",
        "the board takes 0.25 J, less than its processors' 0.5 J",
    )
    shown = "".join(traceback.format_exception(caught.value))
    assert all(violation in shown for violation in caught.value.violations)


def test_the_period_is_the_longest_stage() -> None:
    found = found_after(lambda d: d["predicted"].update(period_s=4.0, throughput_fps=0.25))
    assert found == ["the period is 4 s, and the longest stage 3 s"]


def test_the_throughput_is_the_reciprocal_of_the_period() -> None:
    found = found_after(lambda d: d["predicted"].update(throughput_fps=0.25))
    assert found == ["the throughput is 0.25 frames per second, and the period 3 s"]


def test_the_latency_is_the_sum_of_the_stages() -> None:
    found = found_after(lambda d: d["predicted"].update(latency_s=5.0))
    assert found == ["the latency is 5 s, and the stages take 5.25 s"]


@pytest.mark.parametrize(
    ("sustained_s", "found"),
    [
        (3.0, []),
        (3.001, ["the sustained period is 3.001 s, and the longest stage takes 3 s"]),
        (2.999, ["the sustained period is 2.999 s, and processor 'big' is busy for 3 s a frame"]),
    ],
)
def test_the_sustained_period_lies_between_work_and_longest_stage(sustained_s, found) -> None:
    assert found_after(lambda d: d["predicted"].update(sustained_period_s=sustained_s)) == found


def test_the_board_takes_at_least_what_its_processors_take() -> None:
    assert found_after(lambda d: d["predicted"].update(board_energy_j=0.5)) == []
    assert found_after(lambda d: d["predicted"].update(board_energy_j=0.49)) == [
        "the board takes 0.49 J, less than its processors' 0.5 J"
    ]


def test_the_shares_of_coverage_add_up_to_one() -> None:
    assert found_after(lambda d: d["predicted"].pop("coverage")) == []
    assert found_after(lambda d: d["predicted"]["coverage"].update(nominal=0.25)) == [
        "the shares of coverage add up to 1.25, not to 1"
    ]


def test_times_beyond_all_bounds_are_only_wrong() -> None:
    def change(d):
        for stage in d["stages"]:
            stage["time_s"] = 1e18

    assert "the latency is 5.25 s, and the stages take 2e+18 s" in found_after(change)


SEEDS = st.integers(0, 10**9)


def plan_of(seed) -> dict:
    return json.loads(build_plan(*random_case(seed)).to_bytes())


@given(seed=SEEDS, data=st.data())
def test_an_operator_that_starts_before_a_tensor_arrives_is_caught(seed, data) -> None:
    document = plan_of(seed)
    slow = data.draw(st.sampled_from(range(len(document["operators"]))))
    at = place(document, document["operators"][slow]["id"])
    if at["start_s"] > 0:  # then a tensor or its processor keeps it, for starts are the earliest
        at["start_s"] -= min(0.01, at["start_s"])
        assert any(
            f"operator '{at['operator']}'" in violation for violation in violations(document)
        )


@given(seed=SEEDS, data=st.data())
def test_a_transfer_that_is_taken_away_is_missed(seed, data) -> None:
    document = plan_of(seed)
    if document["transfers"]:
        index = data.draw(st.integers(0, len(document["transfers"]) - 1))
        gone = document["transfers"].pop(index)
        called = f"tensor '{gone['tensor']}' from '{gone['from']}' to '{gone['to']}'"
        found = violations(document)
        assert len(found) == 1
        assert found[0].startswith(f"{called} has no transfer")


def leaves(value, path=()):
    """Paths of all values in a document that are no tables and no lists."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in pairs:
            yield from leaves(entry, (*path, key))
    else:
        yield path


@settings(max_examples=300)
@given(seed=SEEDS, data=st.data())
def test_whatever_is_changed_the_verifier_answers(seed, data) -> None:
    document = plan_of(seed)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(list(leaves(document))))
        holder = document
        for key in parents:
            holder = holder[key]
        other = data.draw(st.sampled_from(list(leaves(document))))
        replacement = document
        for key in other:
            replacement = replacement[key]
        if isinstance(replacement, type(holder[last])):
            holder[last] = replacement
    try:
        plan = Plan.model_validate_json(json.dumps(document))
    except ValueError:
        return  # of another form: for load_plan to refuse
    with contextlib.suppress(VerificationError):
        verify_plan(plan)
