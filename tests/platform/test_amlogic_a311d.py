"""The shipped Amlogic A311D: its numbers are those of the sources it cites."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from parapipe.files.shipped import data_folder
from parapipe.platform.load import load_platform
from tools import block_power
from tools import calibrate_amlogic_a311d as calibrate
from tools import synchronisation_amlogic_a311d as synchronisation
from tools.states_amlogic_a311d import STATES

A311D, A311D_2024 = (load_platform(name) for name in STATES)
BIG, LITTLE, GPU = A311D.processors
LAG_MS = {"amlogic-a311d": 2.24, "amlogic-a311d-2024": 1.86}


def rows(path: Path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_it_has_the_clusters_of_the_device_tree():
    assert A311D.names == ("big", "little", "gpu")
    assert (LITTLE.cores, BIG.cores, GPU.cores) == ((0, 1), (2, 3, 4, 5), ())
    assert GPU.host == "big"


@pytest.mark.parametrize(
    ("processor", "millions_of_hz_and_millivolts"),
    [
        (
            BIG,
            [[500, 790], [667, 790], [1000, 810], [1200, 810], [1398, 830], [1512, 870],
             [1608, 910], [1704, 940], [1800, 950], [1908, 960], [2016, 970], [2100, 980],
             [2208, 1010]],
        ),
        (
            LITTLE,
            [[500, 770], [667, 770], [1000, 770], [1200, 770], [1398, 800], [1512, 840],
             [1608, 880], [1704, 910], [1800, 1010]],
        ),
        (GPU, [[286, 1150], [400, 1150], [500, 1150], [667, 1150], [800, 1150]]),
    ],
    ids=["big", "little", "gpu"],
)  # fmt: skip
def test_operating_points_are_the_vendors_and_the_highest_is_the_default(
    processor, millions_of_hz_and_millivolts
):
    found = [[p.frequency_hz / 1e6, p.voltage_v * 1e3] for p in processor.operating_points]
    assert found == [pytest.approx(row) for row in millions_of_hz_and_millivolts]
    assert processor.point == processor.operating_points[-1]


def test_bandwidths_count_what_tinymembench_copied_twice_and_what_it_wrote_once():
    assert pytest.approx(2 * 4983.3e6, rel=1e-4) == BIG.memory.bandwidth_bytes_per_s
    assert pytest.approx(7465.5e6, rel=1e-4) == LITTLE.memory.bandwidth_bytes_per_s
    assert A311D.memory.bandwidth_bytes_per_s == BIG.memory.bandwidth_bytes_per_s


def test_peaks_are_four_products_per_cycle_and_core_and_eight_per_engine_of_the_gpu():
    assert pytest.approx(4 * 4 * 2.208e9, rel=1e-3) == BIG.peak.macs_per_s["float32"]
    assert LITTLE.peak.macs_per_s["float32"] == 2 * 4 * 1.8e9
    assert GPU.peak.macs_per_s["float32"] == 6 * 8 * 0.8e9


@pytest.mark.parametrize("processor", A311D.processors, ids=A311D.names)
def test_loading_a_frame_takes_what_was_measured_within_8_percent(processor):
    measured = rows(data_folder("profiles") / "amlogic-a311d/measured/blocks.csv")
    sides = {"AlexNet": 227, "Inception-v3": 299, "Inception-v4": 299, "Inception-ResNet-v2": 299}
    loads = [r for r in measured if r["processor"] == processor.name and r["metric"] == "in"]
    assert len(loads) == 7
    for row in loads:
        side = sides.get(row["model"], 224)
        expected = pytest.approx(float(row["time_ms"]) / 1e3, rel=0.08)
        assert processor.input_time(4 * 3 * side * side).value == expected


def test_transfers_say_that_they_are_nominal_and_cover_every_pair():
    assert {A311D.sources[link.source].provenance for link in A311D.links} == {"nominal"}
    assert len(A311D.link_of) == 6


@pytest.mark.parametrize(
    ("p", "q", "latency_ms", "mb_per_s", "ratio"),
    [
        (0, 1, 0.0452, 1308.5, 30.8882 / 39.0974),
        (1, 0, 0.0492, 1091.1, 16.6955 / 30.9068),
        (0, 2, 1.3697, 421.0, 15.508 / 30.9667),
        (2, 0, 0.5137, 455.6, 24.05 / 50.8231),
        (1, 2, 1.2681, 572.7, 16.5781 / 31.0497),
        (2, 1, 0.5505, 722.1, 30.8882 / 39.0974),
    ],
)
def test_a_transfer_is_the_rk3399pros_scaled_to_its_highest_frequencies(
    p, q, latency_ms, mb_per_s, ratio
):
    for size in (0, 4 * 512 * 14 * 14):
        expected_s = ratio * (latency_ms / 1e3 + size / (mb_per_s * 1e6))
        moved_s = A311D.transfer_s(size, p, q) - A311D.link_of[p, q].overhead_s
        assert moved_s == pytest.approx(expected_s, rel=3e-3)


@pytest.mark.parametrize(("pair", "share"), [((0, 2), 0.217), ((0, 1), 0.047)])
def test_fine_plans_of_googlenet_get_as_much_longer_by_synchronisation_as_the_papers(pair, share):
    graph, costs = synchronisation.googlenet()
    problem = synchronisation.whole_model(graph, costs, pair)
    plan = synchronisation.kept_plan(problem, pair, costs.processors)
    shortest = synchronisation.fine(problem, time_limit_s=3600, seed=0)
    overheads = {frozenset(pair): A311D.link_of[pair].overhead_s}
    replayed_s = synchronisation.replayed_s(problem, plan, overheads)
    assert shortest.certificate.proven
    # Solvers count in whole microseconds.
    assert plan.makespan_s == pytest.approx(shortest.makespan_s, abs=1e-6 * problem.operators)
    assert replayed_s / plan.makespan_s - 1 == pytest.approx(share, abs=1e-3)


def test_synchronisation_is_that_of_the_pair_and_says_that_it_is_fitted():
    for (p, q), link in A311D.link_of.items():
        assert link.overhead_s == A311D.link_of[q, p].overhead_s
        assert A311D.sources[link.synchronisation.source].provenance == "fitted"
    assert A311D.link_of[1, 2].overhead_s == A311D.link_of[0, 2].overhead_s


def energy_j(platform, processor):
    """Joules of each network by equation (8), over the operator times of the profile."""
    found = defaultdict(float)
    for row in rows(data_folder("profiles") / platform.profile_name / "armcl-f32.rows.csv"):
        power_w = processor.dynamic_power_w(calibrate.operator_class(row))
        time_s = float(row[f"{processor.name}_s"])
        found[row["model"]] += (processor.static_power_w + power_w) * time_s
    return found


@pytest.mark.parametrize("soc", [A311D, A311D_2024], ids=list(STATES))
def test_the_lag_of_the_meter_explains_the_energy_of_whole_runs_best_at_that_of_the_source(soc):
    state = STATES[soc.name]
    blocks = {p: calibrate.blocks_of(state, p) for p in soc.names}
    lag_s = block_power.fit_meter_lag(calibrate.whole_runs(), blocks, soc.idle_power_w)
    assert lag_s * 1e3 == pytest.approx(LAG_MS[soc.name], abs=1e-2)
    assert f"{LAG_MS[soc.name]} ms" in soc.sources["power-fit"].reasoning
    assert soc.idle_power_w == state.idle_w


def metered_share(row, lag_ms):
    """What a meter that lags shows of a block."""
    time_ms = float(row["time_ms"])
    return 1 - lag_ms / time_ms * (1 - np.exp(-time_ms / lag_ms))


@pytest.mark.parametrize("soc", [A311D, A311D_2024], ids=list(STATES))
@pytest.mark.parametrize("name", A311D.names)
def test_networks_draw_what_the_board_drew_but_for_the_lag_of_its_meter(soc, name):
    processor = soc.processors[soc.index(name)]
    board_j = defaultdict(float)
    for row in rows(data_folder("profiles") / "amlogic-a311d/measured/blocks.csv"):
        if row["processor"] == processor.name and row["metric"] == "task":
            first_run = row["model"] == "GoogLeNet" or row["model"].startswith("Inception")
            active_mw = float(row["board_power_mw"]) - (2190 if first_run else 2020)
            active_j = active_mw * float(row["time_ms"]) / 1e6
            board_j[row["model"]] += active_j / metered_share(row, LAG_MS[soc.name])
    found = energy_j(soc, processor)
    misses = [abs(found[model] / board_j[model] - 1) for model in board_j]
    assert len(misses) == 7
    assert max(misses) < 1 / 8
    assert sum(misses) / 7 < 1 / 20


def test_power_says_that_it_is_fitted_and_utilisation_is_never_nothing():
    for processor in A311D.processors:
        assert A311D.sources[processor.power.source].provenance == "fitted"
        assert 0 < min(processor.power.utilisation.values()) <= 1
        assert max(processor.power.utilisation.values()) == 1


@pytest.mark.parametrize("processor", A311D.processors, ids=A311D.names)
def test_it_runs_what_the_library_has_a_function_for(processor):
    assert processor.supports("Conv", "float32", {"group": 32, "kernel_shape": (3, 3)}) is None
    assert processor.supports("ConvTranspose", "float32", {"group": 2}) is not None
    assert processor.supports("Conv", "float32", {"kernel_shape": (3, 3, 3)}) is not None
    for missing in ("Loop", "NonMaxSuppression"):
        assert "is not among the allowed operators" in str(
            processor.supports(missing, "float32", {})
        )


@pytest.mark.parametrize("type_", ["LayerNormalization", "Gelu", "Erf", "Einsum", "GridSample"])
def test_what_the_library_lacks_is_left_to_the_cpus(type_):
    able = [p.name for p in A311D.processors if p.supports(type_, "float32", {}, {0}) is None]
    assert able == ["big", "little"]


def test_the_gpu_multiplies_with_constants_only():
    *cpus, gpu = A311D.processors
    assert gpu.supports("MatMul", "float32", {}, {0}) is None
    assert str(gpu.supports("MatMul", "float32", {}, {0, 1})) == (
        "MatMul cannot run on gpu: its input 1 (counted from 0) must be constant"
    )
    assert [cpu.supports("MatMul", "float32", {}, {0, 1}) for cpu in cpus] == [None, None]


def test_only_the_gpu_computes_in_half_precision():
    halves = [p.name for p in A311D.processors if p.supports("Relu", "float16", {}) is None]
    assert halves == ["gpu"]


def test_bounded_least_squares_stops_at_the_bound_and_solves_for_the_rest():
    a = np.array([[1.0, 1.0], [1.0, -1.0]])
    # Free, x would be (1, -2); with x[1] >= 0 the best is x[0] = 1.
    b = a @ np.array([1.0, -2.0])
    found = block_power.bounded_least_squares(a, b, np.zeros(2))
    assert found == pytest.approx([1.0, 0.0], abs=1e-9)


@given(arrays(float, (6, 3), elements=st.floats(-1, 1)), arrays(float, 3, elements=st.floats(0, 9)))
def test_bounded_least_squares_fits_exact_data_exactly(noise, truth):
    a = np.vstack([np.eye(3), noise])
    found = block_power.bounded_least_squares(a, a @ truth, np.zeros(3))
    assert found == pytest.approx(truth, abs=1e-6)


def test_the_calibration_finds_the_power_that_made_its_data():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(len(calibrate.CLASSES)), size=60)
    watts = np.linspace(1.0, 3.0, len(calibrate.CLASSES))
    time_s = np.full(60, 0.01)
    power_w = 0.4 + shares @ watts
    networks = [f"net{i % 6}" for i in range(60)]
    blocks = block_power.Blocks(networks, range(60), time_s, power_w, time_s, shares)
    found = block_power.fit(blocks, 0.4 / float(power_w.mean()))
    assert found.static_w == pytest.approx(0.4)
    # Not closer, because every class is pulled a little to the mean.
    assert found.dynamic_w == pytest.approx(watts, abs=0.3)
    for network, joules in found.energy_j(blocks).items():
        metered = sum(
            p * t for n, p, t in zip(blocks.network, power_w, time_s, strict=True) if n == network
        )
        assert joules == pytest.approx(metered, rel=0.01)
