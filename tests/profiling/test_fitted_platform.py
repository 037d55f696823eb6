"""A platform fitted to whole networks: what is written, how far it is off, and what is refused."""

from pathlib import Path

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.errors import CostError, ModelError
from parapipe.platform.load import read_platform
from parapipe.profiling.fitted_platform import SOURCE, NetworkTime, fit_platform, nominal_rates

TABLE = """\
network,processor,ms
alexnet,big,105.5
squeezenet,big,50
mobilenet-v1,big,65.8
alexnet,gpu,97.9
mobilenet-v1,gpu,71.2
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("board") / "a311d.yaml"
    parapipe.new_platform(chip="a311d").write(path)
    return path


def written(folder: Path, text: str) -> Path:
    path = folder / "times.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(board):
    return parapipe.fit_platform(written(board.parent, TABLE), board)


def test_the_platforms_own_times_are_the_nominal_ones(fitted, board):
    for each in fitted.networks:
        costs = build_cost_table(
            parapipe.load_model(f"zoo:{each.network}"), parapipe.load_platform(board), profiles=[]
        )
        p = costs.processors.index(each.processor)
        own_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        assert each.nominal_s == pytest.approx(own_s, rel=1e-9)


def test_batch_norm_takes_time_on_a_board_that_runs_it_as_an_operator(fitted, board, tmp_path):
    table = written(tmp_path, TABLE)
    unfolded = parapipe.fit_platform(table, board, view="as-measured")
    platform = parapipe.load_platform(board)
    for each, folded in zip(unfolded.networks, fitted.networks, strict=True):
        graph = parapipe.load_model(f"zoo:{each.network}")
        costs = build_cost_table(graph, platform, profiles=[], view="as-measured")
        p = costs.processors.index(each.processor)
        own_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        assert each.nominal_s == pytest.approx(own_s, rel=1e-9)
        has_batch_norm = each.network in {"mobilenet-v1", "resnet-50"}
        assert (each.nominal_s > folded.nominal_s) == has_batch_norm
    assert "ran batch-norm" in unfolded.file.text
    assert "ran batch-norm" not in fitted.file.text


def test_an_npus_own_times_count_channels_as_its_platform_does(tmp_path):
    text = parapipe.new_platform(chip="rk3588").text.replace("chip:", "precision: int8\nchip:")
    (tmp_path / "board.yaml").write_text(text, encoding="utf-8")
    lines = "resnet-50,npu0,9\nmobilenet-v1,npu0,3\n"
    table = written(tmp_path, f"network,processor,ms\n{lines}")
    fit = parapipe.fit_platform(table, tmp_path / "board.yaml")
    platform = read_platform(text, "board.yaml")
    for each in fit.networks:
        costs = build_cost_table(parapipe.load_model(f"zoo:{each.network}"), platform, profiles=[])
        p = costs.processors.index("npu0")
        own_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        assert each.nominal_s == pytest.approx(own_s, rel=1e-9)
    again = read_platform(fit.file.text, "fitted.yaml").processors[platform.names.index("npu0")]
    assert again.rates.input_channels == 32


def test_the_fitted_file_prices_networks_as_it_says(fitted):
    platform = read_platform(fitted.file.text, "fitted.yaml")
    for each in fitted.networks:
        costs = build_cost_table(parapipe.load_model(f"zoo:{each.network}"), platform, profiles=[])
        p = costs.processors.index(each.processor)
        own_s = sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        assert each.fitted_s == pytest.approx(own_s, rel=1e-3)  # four digits are written


def test_a_fit_is_nearer_than_what_was_there_and_left_out_networks_are_not_fitted(fitted):
    errors = fitted.median_errors
    assert errors["fitted"] < errors["left_out"]
    assert errors["fitted"] < errors["nominal"] / 3
    assert all(each.left_out_s != each.fitted_s for each in fitted.networks)


def test_processors_without_times_keep_their_figures(fitted, board):
    before, after = parapipe.load_platform(board), read_platform(fitted.file.text, "fitted.yaml")
    assert fitted.unfitted == ("little", "npu")
    for name in fitted.unfitted:
        was, now = (p.processors[p.names.index(name)] for p in (before, after))
        assert now.launch == was.launch
        assert now.rates == was.rates
    for name in ("big", "gpu"):
        was, now = (p.processors[p.names.index(name)] for p in (before, after))
        assert (now.peak, now.memory, now.power) == (was.peak, was.memory, was.power)
        assert now.launch.source == now.rates.source == SOURCE


def test_the_source_says_what_it_was_fitted_to_and_how_far_it_is_off(fitted):
    source = read_platform(fitted.file.text, "fitted.yaml").sources[SOURCE]
    assert source.provenance == "fitted"
    assert source.title == "parapipe platforms fit times.csv"
    assert f"{fitted.median_errors['left_out']:.1%}" in source.reasoning
    assert "3 networks on big, gpu" in source.reasoning


def test_the_nominal_figure_of_a_class_is_the_peak_or_the_bandwidth(fitted, board):
    big = parapipe.load_platform(board).processors[1]
    figures = {each.figure: each for each in fitted.figures if each.processor == "big"}
    assert figures["launch"].nominal == big.launch.overhead_s
    assert figures["conv1x1"].nominal == big.peak.macs_per_s["float32"]
    assert figures["pool"].nominal == big.memory.bandwidth_bytes_per_s
    assert (figures["conv1x1"].unit, figures["gemm"].unit) == ("MAC/s", "B/s")
    assert "view" not in figures


def test_a_fitted_platform_can_be_fitted_again_from_its_own_rates(fitted, board):
    platform = read_platform(fitted.file.text, "fitted.yaml")
    times = [
        NetworkTime(each.network, each.processor, each.fitted_s, i)
        for i, each in enumerate(fitted.networks)
    ]
    graphs = {each.network: parapipe.load_model(f"zoo:{each.network}") for each in times}
    again = fit_platform(platform, times, graphs, table="again.csv")
    big = platform.processors[1]
    rates = nominal_rates(read_platform(again.file.text, "again.yaml").processors[1])
    assert rates.compute == pytest.approx(nominal_rates(big).compute, rel=0.01)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("alexnet,bigg,1\nsqueezenet,big,2", "processor 'bigg'"),
        ("alexnet,big,0\nsqueezenet,big,2", "ms is '0'"),
        ("alexnet,big,-1\nsqueezenet,big,2", "ms is '-1'"),
        ("alexnet,big,fast\nsqueezenet,big,2", "ms is 'fast'"),
        ("alexnet,big,1", "one network; give at least 2"),
        ("alexnet,big,1\nalexnet,big,2", "alexnet on big"),
        (",big,1\nsqueezenet,big,2", "network is empty"),
        ("", "no network"),
    ],
)
def test_a_wrong_table_is_one_error_that_names_it(board, tmp_path, lines, said):
    table = written(tmp_path, f"network,processor,ms\n{lines}\n")
    with pytest.raises(CostError, match=said) as error:
        parapipe.fit_platform(table, board)
    assert "times.csv" in str(error.value)


def test_all_offenders_are_told_at_once(board, tmp_path):
    table = written(tmp_path, "network,processor,ms\nalexnet,b,1\nalexnet,c,1\nalexnet,gpu,1\n")
    with pytest.raises(CostError) as error:
        parapipe.fit_platform(table, board)
    assert all(text in str(error.value) for text in ("'b'", "'c'", "'gpu'"))


def test_a_network_that_is_neither_in_the_zoo_nor_a_file_is_refused(board, tmp_path):
    table = written(tmp_path, "network,processor,ms\nalexnt,big,1\nsqueezenet,big,2\n")
    with pytest.raises(ModelError, match=r"times\.csv:2: .*alexnt"):
        parapipe.fit_platform(table, board)


def test_a_network_that_a_processor_cannot_run_is_refused_with_the_operator(board, tmp_path):
    table = written(tmp_path, "network,processor,ms\nvit-b16,npu,1\nalexnet,npu,2\n")
    with pytest.raises(CostError, match="cannot run on 'npu' alone"):
        parapipe.fit_platform(table, board)


def test_a_platform_with_measured_operators_is_refused(tmp_path):
    with pytest.raises(CostError, match="has measured operators"):
        parapipe.fit_platform(written(tmp_path, TABLE), "amlogic-a311d")


def test_a_network_may_be_a_file_beside_the_table(board, tmp_path):
    parapipe.build_zoo("squeezenet", tmp_path / "mine.onnx", weightless=True)
    table = written(tmp_path, "network,processor,ms\nmine.onnx,big,50\nalexnet,big,105\n")
    fitted = parapipe.fit_platform(table, board)
    assert [each.network for each in fitted.networks] == ["mine.onnx", "alexnet"]
