"""Rules on transfers that keep something busy: each is broken once, and named."""

import copy
import json

import pytest

from tests.cases.plan_cases import drawn_plan
from tests.cases.plan_changes import transfer, violations

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
