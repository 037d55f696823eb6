"""Rules on stages and times: each is broken once, and named."""

import copy

from tests.cases.plan_changes import DRAWN, found_after, operators, place, transfer, violations


def test_stages_must_be_numbered_in_order() -> None:
    assert found_after(lambda d: d["stages"][1].update(index=2)) == [
        "stage 2 stands where stage 1 should"
    ]


def test_stages_must_not_share_processors() -> None:
    def change(d):
        d["stages"][1]["processors"][0]["name"] = "little"

    assert "processor 'little' stands in the stages twice" in found_after(change)


def test_a_stage_must_run_on_processors_that_are_listed() -> None:
    found = found_after(lambda d: d["processors"].pop())
    assert found == ["stage 1 runs on 'gpu', which is no processor listed"]


def test_a_processor_must_be_used() -> None:
    found = found_after(lambda d: d["processors"].append(d["processors"][2] | {"name": "npu"}))
    assert found == ["processor 'npu' is listed and not used"]


def test_an_operator_must_be_placed() -> None:
    found = found_after(lambda d: d["stages"][1]["processors"][0]["operators"].pop())
    assert found == [
        "operator 'e' is in no stage",
        "tensor 'a' from 'big' to 'gpu' has a transfer, and nothing there reads it from there",
    ]


def test_an_operator_must_be_placed_once() -> None:
    def change(d):
        twice = place(d, "c") | {"start_s": 2.5, "end_s": 2.75}
        d["stages"][0]["processors"][1]["operators"].append(twice)

    assert found_after(change) == ["operator 'c' is placed more than once"]


def test_an_operator_that_is_placed_must_be_listed() -> None:
    def change(d):
        ghost = {"operator": "ghost", "start_s": 2.5, "end_s": 2.75, "lag": 0}
        d["stages"][0]["processors"][1]["operators"].append(ghost)

    assert found_after(change) == [
        "operator 'ghost' is in a stage and not in the list of operators"
    ]


def test_an_operator_must_end_within_its_stage() -> None:
    assert found_after(lambda d: place(d, "c").update(end_s=3.0)) == []
    assert (
        found_after(lambda d: place(d, "c").update(end_s=3.001))
        == [
            "operator 'c' ends at 3.001 s, and stage 0 takes 3 s",
            "the sustained period is 3 s, and processor 'little' is busy for 1.751 s a frame",
        ][:1]
    )


def test_an_operator_must_not_end_before_it_starts() -> None:
    assert "operator 'c' ends at 1 s, before its start at 1.25 s" in found_after(
        lambda d: place(d, "c").update(end_s=1.0)
    )


def test_a_processor_must_run_one_operator_at_a_time() -> None:
    found = found_after(lambda d: place(d, "d").update(end_s=1.3))
    assert "operator 'e' starts at 1.25 s on processor 'gpu', which runs 'd' until 1.3 s" in found


def test_operators_must_be_listed_in_the_order_of_their_times() -> None:
    found = found_after(lambda d: d["stages"][1]["processors"][0]["operators"].reverse())
    assert (
        found[0] == "operator 'd' starts at 0.25 s on processor 'gpu', which runs 'e' until 2.25 s"
    )
    assert found[1].startswith("operators wait for each other in a circle")


def test_within_a_stage_a_tensor_arrives_its_transfer_after_it_was_made() -> None:
    assert found_after(lambda d: transfer(d, "a", "little").update(time_s=0.125)) == []
    assert found_after(lambda d: transfer(d, "a", "little").update(time_s=0.5)) == [
        "operator 'c' reads 'a' from 1.25 s, and it arrives on 'little' at 1.5 s"
    ]


def test_a_tensor_from_an_earlier_stage_arrives_its_transfer_after_the_stage_began() -> None:
    assert found_after(lambda d: transfer(d, "c", "gpu").update(time_s=0.5)) == [
        "operator 'd' reads 'c' from 0.25 s, and it arrives on 'gpu' at 0.5 s"
    ]


def test_on_one_processor_a_reader_starts_behind_the_maker() -> None:
    def change(d):
        place(d, "b").update(start_s=0.5)

    assert "operator 'b' reads 'a' from 0.5 s, and it arrives on 'big' at 1 s" in found_after(
        change
    )


def test_a_tensor_must_not_come_from_a_later_stage() -> None:
    def change(d):
        d["stages"].reverse()
        for index, stage in enumerate(d["stages"]):
            stage["index"] = index
            for processor in stage["processors"]:
                for at in processor["operators"]:
                    at["lag"] = index

    assert found_after(change) == [
        f"operator '{reader}' reads '{tensor}', which is made in a later stage (1, after 0)"
        for reader, tensor in (("d", "b"), ("d", "c"), ("e", "a"))
    ]


def test_lags_follow_each_other_from_stage_to_stage() -> None:
    def change(d):
        place(d, "d")["lag"] = place(d, "e")["lag"] = 2

    assert "stage 1 has the frame lags [2], and [1] should follow" in found_after(change)
    assert found_after(lambda d: place(d, "a").update(lag=1))[0] == (
        "stage 1 has the frame lags [1], and [2] should follow"
    )


def interleaved() -> dict:
    """One stage of 3 s on which two frames are under way: d and e work on the frame before.

    big:    a [0, 1]   b [1, 3]
    little: c [1.25, 2.25]
    gpu:    d [0.25, 1.25]   e [1.25, 2.25]   of the frame before
    """
    document = copy.deepcopy(DRAWN)
    first, second = document["stages"]
    first["processors"] += second["processors"]
    document["stages"] = [first]
    for entry in document["transfers"]:
        entry["kind"] = "within-stage"
    document["predicted"]["latency_s"] = 5.25
    return document


def test_a_stage_may_interleave_frames() -> None:
    assert violations(interleaved()) == []


def test_a_frame_is_under_way_from_its_first_start_to_its_last_end() -> None:
    document = interleaved()
    document["predicted"]["latency_s"] = 3.0
    assert violations(document) == ["the latency is 3 s, and the stages take 5.25 s"]


def test_a_lag_must_not_decrease_along_a_tensor() -> None:
    document = interleaved()
    place(document, "a")["lag"] = 1
    document["predicted"]["latency_s"] = 4.25
    assert violations(document) == [
        "operator 'b' reads 'a' at frame lag 0, and it is made at 1",
        "operator 'c' reads 'a' at frame lag 0, and it is made at 1",
    ]


def test_operators_that_take_no_time_must_not_wait_for_each_other() -> None:
    # On big: e then a; on little: c then b; a feeds b, c feeds e; all start and end at 0.
    document = copy.deepcopy(DRAWN)
    wired = {"a": ["x"], "b": ["a"], "c": ["x"], "e": ["c", "b"]}
    document["operators"] = [
        operators(document)[name] | {"inputs": reads, "constants": [], "parts": []}
        for name, reads in wired.items()
    ]
    at = {"start_s": 0.0, "end_s": 0.0, "lag": 0}
    order = {"big": ["e", "a"], "little": ["b", "c"]}
    document["stages"] = [
        {
            "index": 0,
            "time_s": 3.0,
            "processors": [
                {"name": name, "operators": [{"operator": v, **at} for v in listed]}
                for name, listed in order.items()
            ],
        }
    ]
    document["processors"].pop()
    moved = {"kind": "within-stage", "size_bytes": 24, "time_s": 0.0, "queue_depth": 2}
    document["transfers"] = [
        {"tensor": "a", "from": "big", "to": "little", **moved},
        {"tensor": "b", "from": "little", "to": "big", **moved},
        {"tensor": "c", "from": "little", "to": "big", **moved},
    ]
    document["predicted"]["latency_s"] = 3.0
    assert violations(document) == [
        "operators wait for each other in a circle, or for one in a circle: 'e', 'a', 'b', 'c'"
    ]
