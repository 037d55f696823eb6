from dataclasses import replace
from math import inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.coverage import coverage_of
from parapipe.cost.profile import Measurement, Profile
from parapipe.cost.signature import signature_of
from parapipe.errors import CostError
from parapipe.graph.work import operator_class
from tests.cases.coverage import assert_shares_add_up_to_one
from tests.cases.hand_built import GraphBuilder, platform, processor

NO_RELU = {"deny": [{"type": "Relu", "reason": "it has none"}]}


def conv_relu():
    builder = GraphBuilder(x=(1, 8, 10, 10))
    builder.add("Relu", [builder.conv("x", 16)], (1, 16, 10, 10))
    return builder


def fused(builder):
    """Return the graph of all its operators joined into one."""
    parts = tuple(builder.operators)
    last = parts[-1]
    whole = replace(parts[0], id=last.id, outputs=last.outputs, parts=parts)
    builder.operators = [whole]
    return builder.graph()


def measured(graph, single, processor="big", time_s=0.25, frequency_hz=1e9):
    work = single.work
    return Measurement(
        signature_of(single, graph), operator_class(single, graph), work.macs,
        work.read_bytes + work.written_bytes, processor, frequency_hz, time_s, 1, 0, "timed",
    )  # fmt: skip


def table(graph, target=None, rows=(), **options):
    return build_cost_table(
        graph, target or platform(), profiles=[Profile("mine", tuple(rows))], **options
    )


def complaint(*arguments, **options):
    with pytest.raises(CostError) as caught:
        table(*arguments, **options)
    return str(caught.value)


def test_without_a_profile_all_is_nominal():
    costs = table(conv_relu().graph())
    macs = 16 * 100 * 9 * 8
    assert costs.processors == ("big", "little")
    assert costs.time_s(0, 1) == pytest.approx(1e-5 + macs / 1e9)
    assert costs.time_s(1, 1) == pytest.approx(1e-5 + 2 * 6400 / 1e9)
    assert {part.provenance for part in costs.cost(0, 0).parts} == {"nominal"}


def test_a_measurement_counts_only_on_the_processor_it_was_made_on():
    graph = conv_relu().graph()
    costs = table(graph, rows=[measured(graph, graph.operators[0])])
    assert costs.time_s(0, 0) == 0.25
    (part,) = costs.cost(0, 0).parts
    assert (part.provenance, part.source) == ("measured", "profile mine, timed, one row")
    assert costs.cost(0, 1).parts[0].provenance == "nominal"


def test_the_first_profile_that_has_a_signature_counts():
    graph = conv_relu().graph()
    first, second = (
        Profile(name, (measured(graph, graph.operators[1], time_s=time_s),))
        for name, time_s in (("first", 0.5), ("second", 0.75))
    )
    assert build_cost_table(graph, platform(), profiles=[first, second]).time_s(1, 0) == 0.5
    assert build_cost_table(graph, platform(), profiles=[second, first]).time_s(1, 0) == 0.75


def test_what_was_not_measured_is_fitted_to_what_was():
    builder = GraphBuilder(x=(1, 8, 10, 10))
    shapes = [(1, 8, n, n) for n in (10, 20, 40, 80, 160)]
    for shape in shapes:
        builder.add("Relu", ["x"], shape)
    graph = builder.graph()
    rows = [measured(graph, relu, time_s=i + 1.0) for i, relu in enumerate(graph.operators[:4])]
    costs = table(graph, rows=rows)
    part = costs.cost(4, 0).parts[0]
    assert part.provenance == "fitted"
    assert part.source.startswith("fitted to 4 signatures (Relu) of profile mine, mean error ")
    assert part.time_s > 0
    assert part.extrapolated
    assert part.source.endswith(", beyond their range")
    extrapolated = coverage_of({"big": costs.parts(0)}).extrapolated
    assert extrapolated.operators == pytest.approx(1 / 5)
    assert extrapolated.time == pytest.approx(part.time_s / (part.time_s + 10))


def test_a_fused_operator_costs_the_sum_of_its_parts():
    builder = conv_relu()
    apart = builder.graph()
    rows = [measured(apart, relu_or_conv, time_s=0.5) for relu_or_conv in apart.operators]
    separate = table(apart, rows=rows)
    together = table(fused(builder), rows=rows)
    for p in range(2):
        assert together.time_s(0, p) == pytest.approx(separate.time_s(0, p) + separate.time_s(1, p))
        assert together.energy_j(0, p) == pytest.approx(
            separate.energy_j(0, p) + separate.energy_j(1, p)
        )
    assert [part.type for part in together.cost(0, 0).parts] == ["Conv", "Relu"]


def test_energy_is_the_power_of_the_class_times_the_time():
    costs = table(conv_relu().graph())
    assert costs.energy_j(0, 0) == pytest.approx(2.0 * costs.time_s(0, 0))
    assert costs.energy_j(1, 0) == pytest.approx(1.0 * costs.time_s(1, 0))
    assert costs.static_power_w == (0.25, 0.25)
    assert costs.idle_power_w == 2.0


def test_what_a_processor_does_not_run_is_infinite_and_says_why():
    costs = table(
        conv_relu().graph(), platform(processor("big"), processor("little", operators=NO_RELU))
    )
    assert costs.time_s(1, 1) == costs.energy_j(1, 1) == inf
    assert costs.cost(1, 1) is None
    assert str(costs.unsupported(1, 1)) == "Relu cannot run on little: it has none"
    assert costs.unsupported(1, 0) is None


def test_a_fused_operator_runs_where_all_its_parts_run():
    costs = table(
        fused(conv_relu()), platform(processor("big"), processor("little", operators=NO_RELU))
    )
    assert str(costs.unsupported(0, 1)) == "Relu cannot run on little: it has none"


def test_operators_that_no_processor_supports_are_all_named_with_each_reason():
    builder = conv_relu()
    builder.add("Relu", ["x"], (1, 8, 10, 10))
    message = complaint(
        builder.graph(),
        platform(*(processor(name, operators=NO_RELU) for name in ("big", "little"))),
    )
    first, second = (operator.name for operator in builder.operators[1:])
    assert message.startswith(
        f"no processor of platform 'by-hand' supports 2 Relu ('{first}', '{second}': "
        "Relu cannot run on big: it has none, Relu cannot run on little: it has none); choose "
    )


def test_an_operator_without_any_number_is_named_with_what_is_missing():
    complete = platform()
    peak = complete.processors[0].peak.model_copy(update={"macs_per_s": {"int8": 1e9}})
    silent = complete.processors[0].model_copy(update={"peak": peak})
    target = complete.model_copy(update={"processors": (silent, complete.processors[1])})
    message = complaint(conv_relu().graph(), target)
    assert ": processor 'big' states no peak_macs_per_s for float32" in message
    assert "little" not in message
    assert "Relu" not in message


def test_an_unknown_type_is_priced_by_its_bytes_and_reported():
    builder = GraphBuilder(x=(1, 1000))
    builder.add("Gadget", ["x"], (1, 1000), domain="my.own", modelled=False)
    costs = table(builder.graph())
    assert costs.time_s(0, 0) == pytest.approx(1e-5 + 8000 / 1e9)
    assert "by bytes alone" in costs.cost(0, 0).parts[0].source
    assert costs.coverage().unmodelled == ("Gadget",)


def test_a_view_is_free_unless_it_was_measured_and_counts_only_then():
    builder = conv_relu()
    builder.add("Flatten", [builder.operators[-1].id], (1, 1600))
    graph = builder.graph()
    costs = table(graph, rows=[measured(graph, graph.operators[2])])
    assert costs.time_s(2, 0) == 0.25
    assert costs.time_s(2, 1) == 0
    assert costs.cost(2, 1).parts[0].source == "a view, free unless measured"
    assert costs.coverage().measured.operators == 1 / (3 + 2)
    assert costs.coverage().processors["big"].measured == 1 / 3


def test_folded_operators_are_free_when_deployed_and_cost_as_measured():
    builder = conv_relu()
    norm = builder.operator("BatchNormalization", ["gone"], (1, 16, 10, 10))
    builder.operators[0] = replace(builder.operators[0], folded=(norm,))
    graph = builder.graph()
    rows = [measured(graph, norm, time_s=0.5), measured(graph, graph.operators[0], time_s=1.0)]
    assert table(graph, rows=rows).time_s(0, 0) == 1.0
    both = table(graph, rows=rows, view="as-measured")
    assert both.time_s(0, 0) == 1.5
    assert [part.type for part in both.cost(0, 0).parts] == ["Conv", "BatchNormalization"]
    together = table(fused(builder), rows=rows, view="as-measured").cost(0, 0)
    assert [part.type for part in together.parts] == ["Conv", "Relu", "BatchNormalization"]


def test_a_transfer_costs_by_the_bytes_of_the_tensor():
    costs = table(conv_relu().graph())
    seconds = 1e-4 + 3200 / 1e9
    assert costs.transfer_matrix("x") == ((0, pytest.approx(seconds)), (pytest.approx(seconds), 0))
    assert costs.transfer_s("x", 0, 1) == pytest.approx(seconds)
    assert costs.transfer_s("x", 1, 1) == 0


def test_all_inputs_are_loaded_and_all_outputs_read():
    builder = GraphBuilder(a=(1, 1000), b=(1, 500))
    builder.add("Concat", ["a", "b"], (1, 1500), axis=1)
    costs = table(builder.graph())
    assert costs.input_s(1) == pytest.approx(0.01 + 6000 / 1e9)
    assert costs.output_s(1) == pytest.approx(0.002)


def test_a_profile_measured_at_another_clock_is_refused():
    graph = conv_relu().graph()
    rows = [
        measured(graph, graph.operators[0], name, frequency_hz=2e9) for name in ("big", "little")
    ]
    message = complaint(graph, rows=rows)
    for name in ("big", "little"):
        assert f"measured with '{name}' at 2000 MHz, not at 1000 MHz" in message


def test_measurements_of_processors_that_the_platform_lacks_do_no_harm():
    graph = conv_relu().graph()
    rows = [measured(graph, graph.operators[0], "npu", frequency_hz=2e9)]
    assert table(graph, rows=rows).coverage().nominal.operators == 1


@given(
    chosen=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["big", "little"])), unique=True),
    seconds=st.lists(st.floats(1e-9, 10), min_size=10, max_size=10),
)
def test_shares_add_up_to_one_and_times_to_those_of_the_parts(chosen, seconds):
    builder = GraphBuilder(x=(1, 8, 10, 10))
    read = "x"
    for _ in range(2):
        read = builder.add("Relu", [builder.conv(read, 8)], (1, 8, 10, 10))
        builder.conv(read, 4, (1, 1))
    builder.add("Gadget", [read], (1, 3), modelled=False, domain="my.own")
    graph = builder.graph()
    rows = {
        (signature_of(graph.operators[v], graph), name): measured(
            graph, graph.operators[v], name, time_s
        )
        for (v, name), time_s in zip(chosen, seconds, strict=False)
    }
    costs = table(graph, rows=rows.values())
    assert_shares_add_up_to_one(costs.coverage())
    for v in range(len(graph.operators)):
        for p in range(2):
            assert isfinite(costs.time_s(v, p))
            assert costs.time_s(v, p) > 0
            assert costs.time_s(v, p) == sum(part.time_s for part in costs.cost(v, p).parts)
