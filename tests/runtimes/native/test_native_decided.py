"""Strategies decide what processors run, under sanitizers, in plain loops."""

import json

import numpy as np
import pytest

from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from tests.cases.armcl_cases import inception, separable, write_case
from tests.cases.armcl_plans import BIG, LITTLE, MIDDLE, parts_apart, taking_turns
from tests.cases.folders import Network, write_document
from tests.cases.nightly import nightly_from
from tests.cases.runner import assert_near, on_one_core_each, refused

STRATEGIES = ("ready-pool", "steal", "streams")
CPU_ARRANGEMENTS = ("sequential", "pipe-only", "para-only", "hybrid")


def outputs(stub, folder, strategy):
    on_one_core_each(folder)
    report, made, wanted = stub.outputs(
        folder, "--frames", 50, "--strategy", strategy, "--trace", folder / "trace.json"
    )
    assert_near(made, wanted)
    assert report["frames"] == 50
    return report, json.loads((folder / "trace.json").read_text())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("arrangement", CPU_ARRANGEMENTS)
def test_any_arrangement_gives_what_it_should(stub, tmp_path, arrangement, strategy):
    folder = tmp_path / "network"
    write_case(inception(), folder, frames=3, arrangement=arrangement, backend="plain")
    _, trace = outputs(stub, folder, strategy)
    names = {each["name"] for each in json.loads((folder / "plan.json").read_text())["processors"]}
    assert {name for each in trace["operators"] for name in each["processors"]} <= names
    assert {len(each["processors"]) for each in trace["operators"]} == {len(trace["frames"])}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", nightly_from(1, [3, 1]))
def test_plans_whose_processors_take_turns_give_what_they_should(stub, tmp_path, seed, strategy):
    folder = tmp_path / "network"
    write_case(
        inception(), folder, frames=3, plan_of=taking_turns, seed=seed, backend="plain"
    )  # fmt: skip
    outputs(stub, folder, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_are_joined_where_they_lie_whoever_makes_them(stub, tmp_path, strategy):
    folder = tmp_path / "split"
    model, _ = split_proto(separable(), "separable", [read_rule("*:rows=3")])
    write_case(
        model, folder, plan_of=parts_apart, processors=(BIG, LITTLE, MIDDLE), backend="plain"
    )  # fmt: skip
    report, _ = outputs(stub, folder, strategy)
    assert report["views"] == report["joins_and_cuts"] > 8
    assert report["copied_bytes"] == 0


def test_an_operator_never_begins_before_what_it_reads_has_ended(stub, tmp_path):
    folder = tmp_path / "network"
    write_case(inception(), folder, frames=3, arrangement="para-only", backend="plain")
    _, trace = outputs(stub, folder, "ready-pool")
    starts = {each["id"]: np.array(each["starts_s"]) for each in trace["operators"]}
    ends = {each["id"]: starts[each["id"]] + each["times_s"] for each in trace["operators"]}
    document = json.loads((folder / "plan.json").read_text())
    pairs = [
        (name, each["id"])
        for each in document["operators"]
        for name in each["inputs"]
        if name in starts
    ]
    assert len(pairs) > 10
    for maker, reader in pairs:
        assert (starts[reader] >= ends[maker] - 1e-6).all()  # times are float32


@pytest.mark.parametrize(
    ("strategy", "period_s"),
    [
        ("steal", 0),
        ("ready-pool", 0.002),
        ("streams", 0),
        pytest.param("steal", 0.002, marks=pytest.mark.nightly),
        pytest.param("ready-pool", 0, marks=pytest.mark.nightly),
        pytest.param("streams", 0.002, marks=pytest.mark.nightly),
    ],
)
def test_many_frames_all_pass_whoever_admits_them(stub, tmp_path, strategy, period_s):
    folder = tmp_path / "network"
    write_case(separable(), folder, frames=2, arrangement="para-only", backend="plain")
    on_one_core_each(folder)
    trace = folder / "trace.json"
    report, made, wanted = stub.outputs(
        folder, "--frames", 300, "--period", period_s, "--strategy", strategy, "--trace", trace
    )
    assert report["frames"] == 300
    assert_near(made, wanted)
    begins = np.array(json.loads(trace.read_text())["frames"])[:, 0]
    assert (begins >= period_s * np.arange(len(begins))).all()  # none before it is due


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_functions_that_write_to_padding_of_what_they_read_run_one_after_the_other(
    stub, tmp_path, strategy
):
    """The stub asks for padding, and gives the same whoever computes."""
    folder = tmp_path / "network"
    write_case(inception(), folder, frames=3, arrangement="para-only")
    document = on_one_core_each(folder)
    for each in document["processors"]:
        each["backend"] = "stub"
    (folder / "plan.json").write_text(json.dumps(document))
    _, planned, _ = stub.outputs(folder, "--frames", 50)
    _, decided, _ = stub.outputs(folder, "--frames", 50, "--strategy", strategy)
    assert planned.size > 0
    assert np.array_equal(decided, planned)


def test_processors_of_several_libraries_cannot_be_decided_on(stub, tmp_path):
    folder = tmp_path / "network"
    write_case(inception(), folder, arrangement="para-only", backend="plain")
    document = on_one_core_each(folder)
    document["processors"][0]["backend"] = "stub"
    (folder / "plan.json").write_text(json.dumps(document))
    line = refused(stub.run(folder, "--strategy", "steal"))
    assert "'steal' needs CPUs that all compute with one library, or all in plain loops" in line


def test_an_unknown_strategy_is_refused_with_those_that_there_are(stub, tmp_path):
    folder = tmp_path / "network"
    write_case(inception(), folder, arrangement="para-only", backend="plain")
    on_one_core_each(folder)
    line = refused(stub.run(folder, "--strategy", "barriers"))
    assert "there is no strategy 'barriers' here; choose one of plan, ready-pool, steal" in line


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_task_that_waits_for_itself_is_refused_before_it_runs(stub, tmp_path, strategy):
    """Two operators of one source run one after the other, and a third one comes between them."""
    network = Network(
        shapes={name: [1, 2, 3, 4] for name in "xabc"},
        operators=[("a", "Relu", ["x"]), ("b", "Relu", ["a"]), ("c", "Add", ["a", "b"])],
        places={"a": "one", "b": "two", "c": "one"},
        stages=[["one", "two"]],
        outputs=["c"],
    )
    document = network.document(backend="plain")
    document["operators"][2]["source"] = "a"
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    write_document(tmp_path, document)
    assert stub.run(tmp_path).returncode == 0
    line = refused(stub.run(tmp_path, "--strategy", strategy))
    assert f"would wait for ever by the strategy '{strategy}'" in line
