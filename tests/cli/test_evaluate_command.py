"""`parapipe evaluate` and `parapipe compare` as a user types them."""

import json
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
RUNS = REPOSITORY / "profiles/amlogic-a311d/measured/end_to_end_calibration.csv"
GOOGLENET = ("evaluate", "zoo:googlenet", "--platform", "amlogic-a311d")
CHAIN = """
schema: parapipe/assignment/1
default: big
operators: {node0: gpu}
stages:
  - {operators: [node0]}
  - {operators: [node1, node2]}
"""


@pytest.fixture
def chain(parapipe, small_model, tmp_path):
    def run(text, *arguments):
        path = tmp_path / "assignment.yaml"
        path.write_text(text)
        model = small_model(shape=(1, 64, 128, 128))
        places = ("--platform", "amlogic-a311d", "--assignment", path)
        return parapipe("evaluate", model, *places, *arguments)

    return run


def test_an_order_gives_stages_and_marks_a_shared_processor(parapipe):
    document = json.loads(parapipe(*GOOGLENET, "--order", "GGGGBBBBBBG", "--json").out)
    stages = document["stages"]
    assert [stage["processors"] for stage in stages] == [["gpu"], ["big"], ["gpu"]]
    assert [stage["blocks"] for stage in stages] == [[0, 3], [4, 9], [10, 10]]
    assert [stage["shared_processor"] for stage in stages] == [True, False, True]
    times = [stage["time_s"] for stage in stages]
    assert document["latency_s"] == pytest.approx(sum(times))
    assert document["longest_stage_s"] == max(times)
    assert document["period_s"] == pytest.approx(times[0] + times[2])
    assert document["shared_processor"] == ["gpu"]
    coverage = document["coverage"]
    # what runs on big is scaled to the board's state, so it counts as fitted
    assert coverage["fitted"]["time"] == pytest.approx(times[1] / sum(times))
    assert coverage["measured"]["time"] + coverage["fitted"]["time"] == pytest.approx(1)
    idle_j = document["sequential"]["board_energy_j"] - document["sequential"]["energy_j"]
    assert idle_j == pytest.approx(2.02 * document["latency_s"])


def test_it_prints_a_table(parapipe):
    shown = parapipe(*GOOGLENET, "--order", "ggggbbbbbbl").out
    assert "gpu" in shown
    assert "in sequence" in shown


def test_an_order_that_does_not_fit_is_refused_with_all_that_is_wrong(parapipe):
    complaint = parapipe(*GOOGLENET, "--order", "GGX").complaint
    assert "3 letters for 11 blocks, of which the first begins with 'conv1/" in complaint
    assert "; 'X' stands for no processor" in complaint


def test_equal_letters_stand_for_all_blocks_however_many_there_are(parapipe):
    network = ("evaluate", "zoo:inception-resnet-v2", "--platform", "amlogic-a311d")
    found = [
        json.loads(parapipe(*network, "--order", "B" * letters, "--json").out)
        for letters in (1, 50, 51)
    ]
    assert len({document["latency_s"] for document in found}) == 1
    assert {document["order"] for document in found} == {"B", "B" * 50, "B" * 51}
    complaint = parapipe(*network, "--order", "G" + "B" * 50).complaint
    assert "51 letters for 50 blocks" in complaint
    assert "the last with 'Logits/Logits'" in complaint


def test_an_order_needs_a_measured_network(parapipe, small_model):
    ended = parapipe("evaluate", small_model(), "--platform", "amlogic-a311d", "--order", "G")
    assert "has no blocks that were measured on 'amlogic-a311d'" in ended.complaint


def test_a_run_with_a_clock_for_each_block_is_predicted_as_it_was_measured(parapipe):
    # Ehsan-aghapour/LW-GA, Profiling/Evaluations_alex.csv at c67700a, first row: GGLGBBLL at
    # 3-4 1-0 3 3-6 7 1 4 2; 197.72 ms of AlexNet and 20.32 ms to load it, 862.3 mJ of the board.
    places = ("evaluate", "zoo:alexnet", "--platform", "rockchip-rk3399pro", "--order", "GGLGBBLL")
    points = "600/1200 300/408 1008 600/1608 1800 600 1200 816"
    document = json.loads(parapipe(*places, "--points", points, "--json").out)
    assert document["points"] == points
    assert document["latency_s"] == pytest.approx(0.19772, rel=0.03)
    assert document["input_s"] == pytest.approx(0.02032, rel=0.07)
    assert document["sequential"]["board_energy_j"] == pytest.approx(0.8623, rel=0.08)


def test_points_need_an_order_and_a_platform_that_says_what_such_runs_take(parapipe, small_model):
    chosen = ("--order", "B", "--points", "2208")
    ended = parapipe("evaluate", small_model(), "--platform", "amlogic-a311d", *chosen)
    assert "does not say what runs with an operating point for each block take" in ended.complaint
    assigned = ("--platform", "rockchip-rk3399pro", "--assignment", "mine.yaml", *chosen[2:])
    ended = parapipe("evaluate", small_model(), *assigned)
    assert "points are those of an order's blocks" in ended.complaint


def test_one_of_assignment_and_order_is_asked_for(parapipe):
    assert parapipe(*GOOGLENET).code == 2


def test_a_stage_counts_the_hand_over_that_it_receives(chain):
    apart = json.loads(chain(CHAIN, "--json").out)
    together = json.loads(chain(CHAIN.replace("node0: gpu", "node0: big"), "--json").out)
    assert apart["stages"][1]["work_s"] == pytest.approx(together["stages"][1]["work_s"])
    size_bytes = 4 * 64 * 128 * 128
    moved_s = 243e-6 + size_bytes / 962.8e6 + 865e-6
    received_s = apart["stages"][1]["time_s"] - together["stages"][1]["time_s"]
    assert received_s == pytest.approx(moved_s)
    assert together["period_s"] == pytest.approx(together["latency_s"])


def test_everything_wrong_with_an_assignment_is_told_at_once(chain):
    wrong = """
schema: parapipe/assignment/1
subgraphs: {9: big}
operators: {node0: npu, nothing: big, node1: big}
stages:
  - {operators: [node1, node2]}
  - {operators: [node0]}
"""
    ended = chain(wrong)
    assert ended.code == 1
    for told in (
        "subgraphs.9: '9' is no range of subgraphs",
        "there is no processor 'npu'",
        "no operator or node 'nothing'",
        "'node2' has no processor",
        "stages[0]: 'node1' reads what 'node0' makes in stages[1]",
    ):
        assert told in ended.err


def test_an_assignment_file_with_unknown_keys_is_refused_with_its_line(chain):
    ended = chain("schema: parapipe/assignment/1\ndefaults: big\n")
    assert "assignment.yaml:2: defaults: is no known key" in ended.err


def test_predictions_are_compared_with_runs(parapipe, tmp_path):
    found = [
        json.loads(parapipe(*GOOGLENET, "--order", letters * 11, "--json").out) for letters in "BG"
    ]
    predicted, figure = tmp_path / "predicted.json", tmp_path / "figure.svg"
    predicted.write_text(json.dumps(found))
    ended = parapipe("compare", predicted, RUNS, "--json", "--figure", figure)
    document = json.loads(ended.out)
    errors = {(e["metric"], e["model"]): e for e in document["errors"]}
    # 113.9 × 1.112 of 128.0 ms on big, 100.3 of 100.3 ms on the GPU
    assert errors["latency", None]["runs"] == 2
    assert errors["latency", None]["worst"] == pytest.approx(126.61 / 128.03 - 1, abs=1e-4)
    assert errors["latency", None]["rmspe"] == pytest.approx(0.0111 / 2**0.5, abs=1e-3)
    assert errors["latency", None]["rank_correlation"] == pytest.approx(1)
    assert len(document["missing"]) == 21
    assert "RMSPE" in figure.read_text()


def test_an_ordinary_file_of_runs_needs_only_model_and_latency(parapipe, tmp_path):
    predicted, measured = tmp_path / "predicted.json", tmp_path / "measured.csv"
    predicted.write_text(parapipe(*GOOGLENET, "--order", "G" * 11, "--json").out)
    measured.write_text(f"model,order,latency_s\nzoo:googlenet,{'G' * 11},0.1\n")
    assert "GoogLeNet" not in parapipe("compare", predicted, measured).out
    assert "latency" in parapipe("compare", predicted, measured).out
    measured.write_text("model,latency_s\nother,0.1\n")
    assert "none of the measured runs (other) was predicted" in (
        parapipe("compare", predicted, measured).complaint
    )
    predicted.write_text("{}")
    assert "must hold what evaluate --json prints" in (
        parapipe("compare", predicted, measured).complaint
    )


def test_a_plan_is_no_assignment_file(parapipe, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text('{"schema": "parapipe/plan/4"}')
    ended = parapipe("evaluate", "zoo:alexnet", "--platform", "amlogic-a311d", "--assignment", plan)
    assert "is a plan, not an assignment file; give the path of" in ended.complaint
