"""Parts of runs: exact halos, what stays whole and why, and the work of parts."""

import pytest

from parapipe.parts.part import NotCuttableError, Range, divide_axis
from parapipe.parts.work import CutAxis, cuttable_axes, run_of
from tests.cases.parts_alone import parts_of
from tests.cases.small_models import floats, graph_of


def chain(text, *, granularity="onnx", shape="1, 4, 8, 8", **arrays):
    return graph_of(
        f"net (float[{shape}] x) => (float[n, m, o, p] y) {{ {text} }}",
        granularity=granularity,
        **arrays,
    )


def two_convolutions(**options):
    return chain(
        "a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu (a) y = Conv <pads = [1, 1, 1, 1]> (b, w)",
        w=floats(4, 4, 3, 3),
        **options,
    )


def test_rows_of_a_convolution_read_one_row_more_on_either_side_but_not_beyond_the_image():
    graph = two_convolutions()
    first, last = parts_of(graph, graph.operators[0], [Range(2, 0, 5), Range(2, 5, 8)])
    assert first.reads == {"x": (Range(2, 0, 6),), "w": ()}
    assert last.reads == {"x": (Range(2, 4, 8),), "w": ()}


def test_a_run_of_two_convolutions_has_a_halo_of_two_rows():
    graph = two_convolutions()
    first, last = parts_of(graph, graph.operators, [Range(2, 0, 5), Range(2, 5, 8)])
    assert first.reads["x"] == (Range(2, 0, 7),)
    assert last.reads["x"] == (Range(2, 3, 8),)
    steps = run_of(graph, graph.operators).part(Range(2, 5, 8)).steps
    assert [step.computed for step in steps] == [Range(2, 4, 8), Range(2, 4, 8), Range(2, 5, 8)]
    assert [step.part.attributes.get("pads") for step in steps] == [
        (0, 1, 1, 1), None, (0, 1, 1, 1),
    ]  # fmt: skip


def test_the_work_of_parts_is_that_of_the_whole_and_of_halos_computed_twice():
    graph = two_convolutions()
    row = 8 * 4 * 4 * 9  # multiply-accumulates of a row
    parts = parts_of(graph, graph.operators, [Range(2, 0, 5), Range(2, 5, 8)])
    assert [part.work.macs for part in parts] == [(6 + 5) * row, (4 + 3) * row]
    assert sum(part.work.macs for part in parts) == 2 * row + sum(
        operator.work.macs for operator in graph.operators
    )


def test_channels_share_weights_out_and_nothing_is_computed_twice():
    graph = two_convolutions()
    conv = graph.operators[0]
    parts = parts_of(graph, conv, [Range(1, 0, 3), Range(1, 3, 4)])
    assert parts[0].reads == {"x": (), "w": (Range(0, 0, 3),)}
    assert sum(part.work.macs for part in parts) == conv.work.macs
    assert sum(part.work.written_bytes for part in parts) == conv.work.written_bytes


def test_a_fused_operator_is_cut_through_all_its_singles():
    graph = two_convolutions(granularity="fused")
    fused = graph.operators[0]
    assert [single.type for single in fused.singles] == ["Conv", "Relu"]
    whole = parts_of(graph, fused, [Range(2, 0, 8)])
    assert whole[0].work == fused.work
    (half, _) = parts_of(graph, fused, [Range(2, 0, 4), Range(2, 4, 8)])
    assert half.reads == {"x": (Range(2, 0, 5),), "w": ()}


def test_channels_of_two_convolutions_in_a_row_would_be_computed_twice_and_stay_whole():
    graph = two_convolutions()
    axes = cuttable_axes(graph, graph.operators)
    assert axes[1] == "every part would need all of what 'b' makes"
    assert axes[2] == CutAxis(("rows", "tokens"), 8, 1)
    assert axes[0] == "there is only one element along that axis"


def test_groups_are_cut_between_or_one_by_one():
    graph = chain("y = Conv <group = 2> (x, w)", w=floats(6, 2, 1, 1))
    conv = graph.operators[0]
    assert cuttable_axes(graph, conv)[1] == CutAxis(("channels", "heads"), 6, 3)
    (part,) = parts_of(graph, conv, [Range(1, 3, 6)])
    assert part.reads == {"x": (Range(1, 2, 4),), "w": (Range(0, 3, 6),)}
    (part,) = parts_of(graph, conv, [Range(1, 1, 2)])
    assert part.reads == {"x": (Range(1, 0, 2),), "w": (Range(0, 1, 2),)}
    with pytest.raises(NotCuttableError, match="between its 2 groups only"):
        parts_of(graph, conv, [Range(1, 2, 4)])


def test_heads_are_cut_through_the_whole_of_attention():
    graph = graph_of(
        """
        net (float[1, 10, 24] q, float[1, 10, 24] k, float[1, 10, 24] v) => (float[1, 10, 24] y) {
          shape = Constant <value_ints = [1, 10, 4, 6]> ()
          flat = Constant <value_ints = [1, 10, 24]> ()
          qs = Reshape (q, shape)  qt = Transpose <perm = [0, 2, 1, 3]> (qs)
          ks = Reshape (k, shape)  kt = Transpose <perm = [0, 2, 3, 1]> (ks)
          vs = Reshape (v, shape)  vt = Transpose <perm = [0, 2, 1, 3]> (vs)
          s = MatMul (qt, kt)  p = Softmax <axis = -1> (s)  o = MatMul (p, vt)
          t = Transpose <perm = [0, 2, 1, 3]> (o)
          y = Reshape (t, flat)
        }
        """
    )
    axes = cuttable_axes(graph, graph.operators)
    assert axes[2] == CutAxis(("channels",), 24, 6)
    (part,) = parts_of(graph, graph.operators, [Range(2, 6, 12)])
    assert {name: part.reads[name] for name in "qkv"} == dict.fromkeys("qkv", (Range(2, 6, 12),))
    assert 4 * part.work.macs == sum(operator.work.macs for operator in graph.operators)


def test_a_part_leaves_out_what_only_other_parts_need():
    graph = graph_of(
        "net (float[1, 4, 6] x) => (float[1, 8, 6] y) { a = Relu (x) y = Concat <axis = 1> (a, x) }"
    )
    parts = parts_of(graph, graph.operators, [Range(1, 0, 3), Range(1, 3, 5), Range(1, 5, 8)])
    assert [part.reads for part in parts] == [
        {"x": (Range(1, 0, 3),)}, {"x": (Range(1, 0, 4),)}, {"x": (Range(1, 1, 4),)},
    ]  # fmt: skip
    steps = run_of(graph, graph.operators).part(Range(1, 5, 8)).steps
    assert [step.operator.name for step in steps] == ["y"]


@pytest.mark.parametrize("extent", range(2, 20))
def test_every_size_of_an_axis_can_be_cut_into_two(extent):
    graph = chain("y = Relu (x)", shape=f"1, 1, {extent}, 1")
    assert cuttable_axes(graph, graph.operators[0])[2] == CutAxis(("rows", "tokens"), extent, 1)


def test_a_type_without_a_rule_stays_whole():
    graph = graph_of("net (float[4, 4] x) => (float[4, 4] y) { y = CumSum (x, axis) }", axis=0)
    assert set(cuttable_axes(graph, graph.operators[0]).values()) == {
        "there is no rule that cuts its type"
    }


@pytest.mark.parametrize(
    ("extent", "step", "shares", "ends"),
    [
        (10, 1, (1, 1), [5, 10]),
        (10, 1, (3, 2), [6, 10]),
        (10, 4, (1, 1), [4, 10]),
        (3, 1, (1, 8, 1), [1, 2, 3]),
        (2, 1, (1, 2, 1), [1, 2]),
        (7, 7, (1, 1), [7]),
        (100, 1, (0.1, 0.2), [33, 100]),
    ],
)
def test_shares_become_ranges_at_multiples_of_a_step_and_all_get_something(
    extent, step, shares, ends
):
    ranges = divide_axis(2, extent, step, shares)
    assert [each.end for each in ranges] == ends
    assert [each.begin for each in ranges] == [0, *ends[:-1]]
