"""Rules on transfers, those that keep something busy included: each is broken once, and named."""

from __future__ import annotations

import copy
import json

import pytest

from parapipe.mappings.event_graph import channel_depth
from parapipe.plan.structure_rules import least_depth
from tests.cases.plan_cases import drawn_plan
from tests.cases.plan_changes import found_after, transfer, violations


def test_a_transfer_must_not_be_missing() -> None:
    assert found_after(lambda d: d["transfers"].remove(transfer(d, "a", "gpu"))) == [
        "tensor 'a' from 'big' to 'gpu' has no transfer, and 'e' there reads it"
    ]


def test_a_transfer_must_not_stand_twice() -> None:
    assert found_after(lambda d: d["transfers"].append(transfer(d, "b", "gpu"))) == [
        "tensor 'b' from 'big' to 'gpu' has 2 transfers"
    ]


@pytest.mark.parametrize(
    ("tensor", "source", "target"),
    [("b", "big", "little"), ("a", "big", "big"), ("x", "big", "gpu"), ("ghost", "big", "gpu")],
)
def test_a_transfer_that_nobody_needs_is_superfluous(tensor, source, target) -> None:
    def change(d):
        entry = {"tensor": tensor, "from": source, "to": target}
        d["transfers"].append(transfer(d, "b", "gpu") | entry)

    assert found_after(change) == [
        (
            f"tensor '{tensor}' from '{source}' to '{target}' has a transfer, and nothing there "
            "reads it from there"
        )
    ]


def test_a_transfer_must_come_from_where_the_tensor_is_made() -> None:
    assert found_after(lambda d: transfer(d, "b", "gpu").update({"from": "little"})) == [
        "tensor 'b' from 'big' to 'gpu' has no transfer, and 'd' there reads it",
        "tensor 'b' from 'little' to 'gpu' has a transfer, and nothing there reads it from there",
    ]


@pytest.mark.parametrize(
    ("target", "wrong", "right"),
    [("little", "stage", "within-stage"), ("gpu", "within-stage", "stage")],
)
def test_a_transfer_says_whether_it_leaves_its_stage(target, wrong, right) -> None:
    assert found_after(lambda d: transfer(d, "a", target).update(kind=wrong)) == [
        (
            f"the transfer of tensor 'a' from 'big' to '{target}' is of kind '{wrong}' and should "
            f"be of kind '{right}'"
        )
    ]


def test_a_transfer_moves_the_bytes_of_its_tensor() -> None:
    assert found_after(lambda d: transfer(d, "b", "gpu").update(size_bytes=12)) == [
        "the transfer of tensor 'b' from 'big' to 'gpu' moves 12 bytes of 24"
    ]


def test_a_queue_holds_two_frames_at_least() -> None:
    assert found_after(lambda d: transfer(d, "a", "little").update(queue_depth=2)) == []
    assert found_after(lambda d: transfer(d, "a", "little").update(queue_depth=1)) == [
        "the transfer of tensor 'a' from 'big' to 'little' has a queue of 1, and needs 2"
    ]


@pytest.mark.parametrize(("apart", "slots"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_a_tensor_needs_a_slot_for_every_stage_it_passes(apart, slots) -> None:
    assert least_depth(5, 5 + apart) == slots
    assert channel_depth(5, 5 + apart) >= slots


DRAWN = json.loads(drawn_plan().to_bytes())
A_LITTLE = "the transfer of tensor 'a' from 'big' to 'little'"
B_GPU = "the transfer of tensor 'b' from 'big' to 'gpu'"


def occupied(occupies="bus", *, change=lambda document: None):
    """Violations of the drawn plan (see `plan_cases.drawn`) with transfers on a bus."""
    document = copy.deepcopy(DRAWN)
    starts_s = {("a", "little"): 1.0, ("b", "gpu"): 0.0, ("c", "gpu"): 0.0, ("a", "gpu"): 0.25}
    for entry in document["transfers"]:
        start_s = starts_s[entry["tensor"], entry["to"]]
        if entry["to"] == "little" or entry["tensor"] == "b":
            entry |= {"occupies": occupies, "start_s": start_s, "end_s": start_s + 0.25}
    change(document)
    return violations(document)


def test_what_keeps_the_rules_passes():
    assert occupied() == []
    assert "occupies" not in DRAWN["transfers"][0]


@pytest.mark.parametrize("key", ["occupies", "start_s", "end_s"])
def test_what_is_occupied_and_when_stand_together(key):
    (only,) = occupied(change=lambda d: transfer(d, "b", "gpu").pop(key))
    assert only == f"{B_GPU} gives some of occupies, start_s and end_s, not all"


def test_a_third_processor_is_never_occupied():
    (only,) = occupied(change=lambda d: transfer(d, "b", "gpu").update(occupies="little"))
    assert only == f"{B_GPU} occupies 'little', which it neither leaves nor reaches"


def test_it_lasts_as_long_as_the_transfer_takes():
    (only,) = occupied(change=lambda d: transfer(d, "b", "gpu").update(end_s=0.2))
    assert only == f"{B_GPU} lasts 0.2 s, and takes 0.25 s"


def test_it_starts_when_the_tensor_is_made():
    (only,) = occupied(change=lambda d: transfer(d, "a", "little").update(start_s=0.75, end_s=1.0))
    assert only == f"{A_LITTLE} starts at 0.75 s, and it is made at 1 s"


def test_it_ends_before_the_tensor_is_read():
    (only,) = occupied(change=lambda d: transfer(d, "b", "gpu").update(start_s=0.5, end_s=0.75))
    assert only == f"operator 'd' starts at 0.25 s, and {B_GPU} ends at 0.75 s"


def test_it_ends_within_its_stage():
    found = occupied(change=lambda d: transfer(d, "b", "gpu").update(start_s=2.25, end_s=2.5))
    assert f"{B_GPU} ends at 2.5 s, and its stage takes 2.25 s" in found


def test_an_operator_of_the_processor_does_not_run_meanwhile():
    # big runs b from 1 to 3 while it would send a
    found = occupied(change=lambda d: transfer(d, "a", "little").update(occupies="big"))
    assert f"{A_LITTLE} and operator 'b' keep 'big' busy at the same time" in found


def test_two_transfers_of_a_stage_do_not_share_a_link():
    def change(document):
        transfer(document, "c", "gpu").update(occupies="bus", start_s=0.0, end_s=0.25)

    (only,) = occupied(change=change)
    assert only.startswith(B_GPU)
    assert only.endswith("keep 'bus' busy at the same time")


def test_transfers_of_two_stages_are_of_different_frames_and_may_share_it():
    def change(document):
        transfer(document, "a", "little").update(start_s=1.0, end_s=1.25)
        transfer(document, "b", "gpu").update(start_s=0.0, end_s=0.25)

    assert occupied(change=change) == []


def test_the_sustained_period_is_no_shorter_than_the_work_of_a_link():
    def change(document):
        for tensor, target in (("a", "little"), ("b", "gpu")):
            moved = transfer(document, tensor, target)
            moved["time_s"] = 9.0
            moved["end_s"] = moved["start_s"] + 9.0

    assert any("link 'bus' is busy for 18 s a frame" in each for each in occupied(change=change))


def test_it_may_exceed_the_longest_stage_only_where_something_serves_several_stages():
    def longer(document):
        document["predicted"]["sustained_period_s"] = 3.1

    def in_one_stage(document):
        longer(document)
        for key in ("occupies", "start_s", "end_s"):
            del transfer(document, "b", "gpu")[key]

    assert occupied(change=longer) == []
    assert any("the longest stage takes 3 s" in each for each in occupied(change=in_one_stage))
