"""Rules on transfers: each is broken once, and named."""

import pytest

from parapipe.pipeline.sustained import channel_depth
from parapipe.plan.transfers import least_depth
from tests.cases.plan_changes import found_after, transfer


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
