"""Blocks at clocks of their own: hand-computed times and energies, and points that do not fit."""

from __future__ import annotations

import pytest

from parapipe.cost.block_points import BlockCosts, BlockPoint, read_points
from parapipe.errors import AssignmentError, PlatformError
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import assignment_of_order
from parapipe.mappings.evaluate import evaluate
from parapipe.platform.platform import Platform
from tests.cases.hand_built import GraphBuilder, platform, processor

GHZ = 1e9
NOTHING = {"blocks_of": "amlogic-a311d", "cpu_start_s": 0, "change_share": 0, "source": "guess"}
RULES = NOTHING | {
    "cpu_start_s": 1e-3, "change_share": 0.25, "host_cycles": 1e6, "loading_compute_share": 0.5,
    "fused_activations": ["Relu"],
}  # fmt: skip


def clocked(name, *points, **changes):
    """Half of each time is cycles; the last point is the default one; nothing to launch."""
    return processor(
        name,
        clock={
            "source": "guess",
            "default_frequency_hz": points[-1][0],
            "points": [{"frequency_hz": hz, "voltage_v": volts} for hz, volts in points],
            "scaling": {"source": "guess", "compute_share": {"default": 0.5}},
        },
        launch={"source": "guess", "overhead_s": 0},
        **changes,
    )


def board(rules):
    big = clocked("big", (1 * GHZ, 0.8), (2 * GHZ, 1.0))
    gpu = clocked("gpu", (0.5 * GHZ, 0.8), (1 * GHZ, 1.0), kind="gpu", cores=[], host="big")
    raw = platform(big, gpu).model_dump(by_alias=True, exclude_defaults=True)
    return Platform.model_validate(raw | ({"block_runs": rules} if rules else {}))


def chain():
    """Three operators of 2 ms each: a megabyte read and one written, at 1 GB/s."""
    builder = GraphBuilder(x=(1, 250, 1000))
    first = builder.add("Neg", ["x"], (1, 250, 1000))
    builder.add("Abs", [builder.add("Relu", [first], (1, 250, 1000))], (1, 250, 1000))
    return builder.graph()


BLOCKS = (0, 0, 1)


def figures(rules, order, text):
    graph, soc = chain(), board(rules)
    assignment = assignment_of_order(order, graph=graph, blocks=BLOCKS, names=soc.names)
    points = read_points(text, [assignment.processors[v] for v in (0, 2)], soc)
    costs = BlockCosts(graph, soc, BLOCKS).at(points)
    return evaluate(mapping_of(graph, soc, costs, assignment), graph, costs)


def test_without_anything_added_a_block_takes_its_operators_at_its_clock():
    # Two operators on big at 1 GHz: 2 × 2 ms × (½·2 + ½). One on the GPU at 1 GHz: 2 ms, and the
    # links' transfer of 1.1 ms does not count.
    found = figures(NOTHING, "BG", "1000 1000/1000")
    assert [stage.time_s for stage in found.stages] == pytest.approx([6e-3, 2e-3])


def test_starts_changes_hosts_and_free_activations_are_those_of_the_file():
    # Block 0: Neg alone, 3 ms at 1 GHz, and 1 ms to start. Block 1: 3 ms at 0.5 GHz, a quarter more
    # after another processor, and 10⁶ cycles at 1 GHz in place of 2 GHz: 0.5 ms.
    found = figures(RULES, "BG", "1000 500/1000")
    assert [stage.time_s for stage in found.stages] == pytest.approx([4e-3, 4.25e-3])
    assert found.latency_s == pytest.approx(8.25e-3)
    # 10 ms and a megabyte at 1 GB/s, half of it in cycles of big at half its clock.
    assert found.input_s == pytest.approx(16.5e-3)


def test_energy_is_that_of_the_points():
    # Dynamic: 2 nW/(V²·Hz) × 0.8² × f × ½ for elementwise: 0.64 and 0.32 W. Static: 0.25 × 0.8 W.
    # Idle: 2 W.
    found = figures(RULES, "BG", "1000 500/1000")
    dynamic_j = 0.64 * 4e-3 + 0.32 * 4.25e-3
    assert found.sequential_energy_j == pytest.approx(dynamic_j + 0.2 * 8.25e-3)
    assert found.sequential_board_energy_j == pytest.approx(dynamic_j + 2.2 * 8.25e-3)


def test_a_processor_at_two_points_draws_the_static_power_of_each_while_it_runs():
    # 3 + 1 ms at 0.8 V and 2 + 1 ms at 1 V on one processor: no change of processor.
    found = figures(RULES, "BB", "1000 2000")
    assert found.latency_s == pytest.approx(7e-3)
    dynamic_j = 0.64 * 4e-3 + 2.0 * 3e-3
    static_j = 0.25 * (0.8 * 4e-3 + 1.0 * 3e-3)
    assert found.sequential_energy_j == pytest.approx(dynamic_j + static_j)


def test_a_host_loads_the_frame_of_what_it_hosts():
    # big at 1 GHz in place of 2 GHz, whatever the GPU's clock.
    assert figures(RULES, "GB", "1000/1000 2000").input_s == pytest.approx(16.5e-3)
    assert figures(RULES, "GB", "500/2000 2000").input_s == pytest.approx(11e-3)


def test_a_host_that_is_not_named_is_at_its_default_clock():
    assert read_points("500 1000", [1, 0], board(RULES)) == (
        BlockPoint(1, 0.5 * GHZ, 2 * GHZ),
        BlockPoint(0, 1 * GHZ),
    )


def test_all_points_that_do_not_fit_are_told_at_once():
    with pytest.raises(AssignmentError) as refused:
        read_points("900 1000/900 1000/1000", [0, 1, 0, 0], board(RULES))
    text = str(refused.value)
    assert "there are 3 for 4 blocks" in text
    assert "block 0: '900' is no operating point of 'big', which has 1000, 2000" in text
    assert "block 1: '900' is no operating point of 'big'" in text
    assert "block 2: 'big' has no host; leave out '/1000'" in text


def test_a_platform_that_says_nothing_of_such_runs_is_refused():
    with pytest.raises(PlatformError, match="add a section block_runs"):
        BlockCosts(chain(), board(None), BLOCKS)
