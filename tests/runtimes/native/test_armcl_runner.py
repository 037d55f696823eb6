"""Exported plans on the library itself, under emulation: results, order, times, damage."""

import json
import random
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from parapipe import build_zoo, import_profile, load_platform
from parapipe.cost.profile import read_profile
from parapipe.parts.rules import read_rule
from parapipe.parts.split import split_proto
from parapipe.plan.mapped import mapping_view
from tests.cases.armcl_cases import cases, inception, separable, write_case
from tests.cases.armcl_plans import BIG, LITTLE, MIDDLE, parts_apart, taking_turns
from tests.cases.attention_cases import attention_cases
from tests.cases.nightly import nightly_from, nightly_repeats
from tests.cases.replicated_plans import replicated
from tests.cases.residual_cases import residual
from tests.cases.runner import on_one_core_each, on_this_machine, refused

CASES = cases()
ON_CPUS = ("sequential", "pipe-only", "para-only", "hybrid")
STRATEGIES = ("plan", "ready-pool", "steal", "streams")
TOLERANCE = 1e-5  # of the largest number of the output
REPOSITORY = Path(__file__).parents[3]


def assert_near(made, wanted):
    assert made.size == wanted.size > 0
    assert np.abs(made - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def types_of(case):
    return frozenset(node.op_type for node in case.model().graph.node)


def exported_types(folder):
    operators = json.loads((folder / "plan.json").read_text())["operators"]
    fused = [operator["activation"] for operator in operators if operator.get("activation")]
    return {operator["type"] for operator in (*operators, *fused)}


@pytest.mark.parametrize("case", nightly_repeats(CASES, types_of), ids=lambda case: case.name)
def test_an_operator_computes_what_onnx_runtime_does(arm, tmp_path, case):
    folder = tmp_path / "case"
    write_case(case.model(), folder)
    _, made, wanted = arm.outputs(folder, "--frames", 1, "--warmup", 0, *on_this_machine(folder))
    assert_near(made, wanted)


def test_every_operator_of_the_format_is_among_the_cases(tmp_path):
    _, _, table = (REPOSITORY / "docs/armcl-format.md").read_text().partition("## Operators")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    tried = set()
    for case in CASES:
        write_case(case.model(), tmp_path / case.name)
        tried |= exported_types(tmp_path / case.name)
    for case in attention_cases():
        write_case(case.model(), tmp_path / case.name, backend="plain")
        tried |= exported_types(tmp_path / case.name)
    assert listed == tried
    assert len(CASES) >= 90


@pytest.mark.parametrize("arrangement", ON_CPUS)
def test_an_inception_network_runs_in_every_kind_of_configuration(arm, tmp_path, arrangement):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, arrangement=arrangement)
    report, made, wanted = arm.outputs(
        *(folder, "--frames", 9, "--check", folder / "expected.bin", *on_this_machine(folder))
    )
    assert_near(made, wanted)
    assert report["agrees"]
    assert report["in_order"]


@pytest.fixture(scope="module")
def in_turns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("in_turns") / "inception"
    plan = write_case(inception(), folder, frames=3, plan_of=taking_turns, seed=3)
    assert mapping_view(plan).interleaved
    return folder


def test_processors_take_turns_on_several_frames(arm, in_turns):
    report, made, wanted = arm.outputs(
        *(in_turns, "--frames", 40, "--check", in_turns / "expected.bin"),
        *on_this_machine(in_turns),
    )
    assert_near(made, wanted)
    assert report["agrees"]
    assert report["in_order"]
    assert report["most_frames_in_flight"] >= 3


@pytest.mark.parametrize("seed", [1, 9])
def test_processors_take_turns_in_any_order(arm, tmp_path, seed):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, plan_of=taking_turns, seed=seed)
    report, made, wanted = arm.outputs(
        folder, "--frames", 9, "--check", folder / "expected.bin", *on_this_machine(folder)
    )
    assert_near(made, wanted)
    assert report["agrees"]


def assert_decided(arm, folder, *options):
    """Fifty frames of three inputs on the library, each processor on one core."""
    report, made, wanted = arm.outputs(
        *(folder, "--frames", 50, "--check", folder / "expected.bin", *options)
    )
    assert_near(made, wanted)
    assert report["agrees"]


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize("arrangement", nightly_from(1, ("hybrid", "sequential", "para-only")))
def test_strategies_decide_what_the_library_computes(arm, tmp_path, arrangement, strategy):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, arrangement=arrangement)
    on_one_core_each(folder)
    assert_decided(arm, folder, "--strategy", strategy)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_strategies_decide_on_plans_whose_processors_take_turns(arm, in_turns, strategy):
    on_one_core_each(in_turns)
    assert_decided(arm, in_turns, "--strategy", strategy)


@pytest.mark.parametrize("strategy", nightly_from(1, STRATEGIES))
@pytest.mark.parametrize("counts", nightly_from(1, [(1, 2), (3,), (2, 2)]), ids=str)
def test_replicas_take_turns_on_frames_of_the_library(arm, tmp_path, counts, strategy):
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=7, plan_of=replicated, counts=counts)
    on_one_core_each(folder)
    assert_decided(arm, folder, "--strategy", strategy)


def moved_bytes(folder):
    """Bytes of all that Concats and Slices make and transfers move, for a frame."""
    document = json.loads((folder / "plan.json").read_text())
    joins = [each for each in document["operators"] if each["type"] in ("Concat", "Slice")]
    names = [each["id"] for each in joins] + [each["tensor"] for each in document["transfers"]]
    return sum(4 * np.prod(document["tensors"][name]["shape"]) for name in names)


@pytest.mark.parametrize("processors", nightly_from(1, [(BIG, LITTLE), (LITTLE, BIG), (BIG,)]))
@pytest.mark.parametrize(
    ("rule", "copied"),
    [
        ("Conv:channels=3,2", 0),
        ("Conv:channels=5,1,3", 0),
        ("*:channels=3,2", 0),  # parts of 7 and 5 channels read parts of 6 and 6, in one buffer
        ("Conv:rows=3,2", 1),
    ],
)
def test_unequal_parts_of_operators_give_the_whole(arm, tmp_path, rule, copied, processors):
    model, _ = split_proto(separable(), "separable", [read_rule(rule)])
    folder = tmp_path / "parts"
    write_case(model, folder, frames=3, plan_of=parts_apart, processors=processors)
    report, made, wanted = arm.outputs(
        *(folder, "--frames", 9, "--check", folder / "expected.bin", *on_this_machine(folder))
    )
    assert_near(made, wanted)
    assert report["agrees"]
    assert report["joins_and_cuts"] >= 8
    assert (report["views"] == report["joins_and_cuts"]) == (copied == 0)
    assert (report["copied_bytes"] == 0) == (copied == 0)
    assert report["copied_bytes"] <= copied * moved_bytes(folder)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hybrid") / "inception"
    write_case(inception(), folder, frames=3, arrangement="hybrid")
    return folder


def test_200_frames_go_through_a_hybrid_in_order_and_side_by_side(arm, hybrid):
    report, _, _ = arm.outputs(
        *(hybrid, "--frames", 200, "--check", hybrid / "expected.bin", *on_this_machine(hybrid))
    )
    assert report["frames"] == 200
    assert report["agrees"]  # all frames are compared, and neighbours differ
    assert report["in_order"]
    assert report["most_frames_in_flight"] >= 2
    assert report["overlapping_frames"] > 0
    # Schedulers of the clusters that began a kernel while another one's was running.
    assert 0 < report["overlapped_turns"] < report["turns"]
    assert report["shared_transfers"] > 0


def test_one_processor_never_has_two_schedulers_at_work(arm, tmp_path):
    folder = tmp_path / "inception"
    write_case(inception(), folder)
    report = arm.measured(folder, "--frames", 3, *on_this_machine(folder))
    assert report["turns"] > 0
    assert report["overlapped_turns"] == 0


def test_an_interrupt_ends_a_run_cleanly(arm, hybrid):
    words = [*arm.command, str(hybrid), "--json", "--frames", "100000000", "--warmup", "0"]
    words += on_this_machine(hybrid)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr.readline() == "running 0 + 100000000 frames\n"
        run.send_signal(signal.SIGINT)
        said, complained = run.communicate(timeout=120)
    assert run.returncode == 130
    assert complained == ""
    assert json.loads(said)["interrupted"]


@pytest.mark.parametrize("network", nightly_from(1, ["squeezenet", "googlenet"]))
def test_a_network_of_the_zoo_runs_in_a_hybrid_configuration(arm, tmp_path, network):
    import onnx

    build_zoo(network, tmp_path / "network.onnx")
    folder = tmp_path / "folder"
    write_case(onnx.load(tmp_path / "network.onnx"), folder, arrangement="hybrid")
    report, made, wanted = arm.outputs(
        folder, "--frames", 2, "--warmup", 0, *on_this_machine(folder)
    )
    assert_near(made, wanted)
    assert len(report["processors"]) == 3
    assert report["overlapped_turns"] > 0


def test_times_of_operators_come_back_as_a_profile(arm, tmp_path):
    folder = tmp_path / "folder"
    write_case(inception(), folder, arrangement="para-only")
    clocks = {p.name: p.point.frequency_hz for p in load_platform("amlogic-a311d").processors}
    document = json.loads((folder / "plan.json").read_text())
    for processor in document["processors"]:
        processor["frequency_hz"] = clocks[processor["name"]]
    (folder / "plan.json").write_text(json.dumps(document))
    rows = tmp_path / "rows.csv"
    report = arm.measured(folder, "--frames", 3, "--profile", rows, *on_this_machine(folder))
    imported = import_profile(rows, "amlogic-a311d", out=tmp_path / "profile.csv")
    measured = read_profile(imported.path).measurements
    assert {row.processor for row in measured} == {"big", "little"}
    assert {row.signature.type for row in measured} >= {"Conv", "MaxPool", "Concat", "Gemm", "LRN"}
    timed = [op for op in report["operators"] if op["source"] in document["profile"]]
    assert sum(row.rows for row in measured) == 3 * len(timed) == 3 * len(document["profile"])


def test_a_core_that_is_not_there_is_told_before_the_library_meets_it(arm, hybrid):
    assert "needs core 4000" in refused(arm.run(hybrid, "--cores", "big=4000"))


def test_notes_on_clocks_name_every_core(arm, hybrid):
    report = arm.measured(hybrid, "--frames", 1, "--governor", *on_this_machine(hybrid))
    used = [word.split("=") for word in on_this_machine(hybrid) if "=" in word]
    assert len(report["notes"]) == sum(len(cores.split(",")) for _, cores in used)
    assert all(re.match(r"processor '\w+', core \d+: ", note) for note in report["notes"])


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicas") / "residual"
    write_case(residual(), folder, frames=3, plan_of=replicated, counts=(2, 3), backend="plain")
    return folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "separable"
    model, _ = split_proto(separable(), "separable", [read_rule("*:rows=3")])
    write_case(model, folder, plan_of=parts_apart, processors=(BIG, LITTLE, MIDDLE))
    return folder


DAMAGES = [
    pytest.param(*case, marks=[pytest.mark.nightly] * nightly, id="-".join(map(str, case)))
    for *case, nightly in (
        ("stub", "in_turns", 400, False),
        ("stub", "replicas", 400, False),
        ("arm", "hybrid", 300, False),
        ("stub", "in_turns", 5000, True),
        ("stub", "hybrid", 5000, True),
        ("stub", "replicas", 5000, True),
        ("stub", "parts", 5000, True),
        ("arm", "hybrid", 2000, True),
    )
]


@pytest.mark.parametrize(("which", "folder", "count"), DAMAGES)
def test_damaged_plans_never_crash_the_runner_whatever_decides(which, folder, count, request):
    runner, plan = request.getfixturevalue(which), request.getfixturevalue(folder)
    seed = random.Random(count).randrange(2**31)
    done = subprocess.run(
        [*runner.fuzz, str(plan), str(count), str(seed), *STRATEGIES],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    total, refusals, ran = map(int, re.findall(r"\d+", done.stdout))
    assert total == count >= refusals + ran  # plans of more than a MiB are only checked
    assert ran > count // 10
