"""Why kinds do not exist: each reason on a model small enough to see it; brute force agrees."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost, PartCost
from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work
from parapipe.graph.partition import partition
from parapipe.platform.fields import named_value
from parapipe.platform.support import Refusal, Unlisted
from parapipe.problems.problems import requests
from parapipe.search.infeasible import absent_kinds
from parapipe.search.stages.options import Option
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable
from parapipe.solvers.coarse import map as coarse

ONE_MS, ONE_W = named_value("time", 1e-3, "s"), named_value("power", 1.0, "W")
KINDS = ["sequential", "pipe-only", "para-only", "hybrid"]


def graph_of(*types, reads=None):
    """Build a chain of operators named conv1, lrn1, conv2, ...; `reads` has other predecessors."""
    made = []
    for v, kind in enumerate(types):
        name = f"{kind.lower()}{types[: v + 1].count(kind)}"
        before = (reads or {}).get(v, (v - 1,)) if v else ()
        inputs = tuple(f"t{u}" for u in before) or ("x",)
        work = Work(1, 4, 4)
        made.append(Operator(f"t{v}", name, "", kind, {}, inputs, (f"t{v}",), work, (name,)))
    tensors = {name: Tensor(name, (1,), "float32") for name in ["x", *(op.id for op in made)]}
    outputs = (made[-1].id,)
    return OperatorGraph(ModelSource("m", ""), "fused", tuple(made), tensors, {}, ("x",), outputs)


def costs_of(graph, refused):
    """Price each operator at 1 ms; `refused[processor][type]` is the cause why it does not run."""

    def entry(operator, processor):
        for single in operator.singles:
            if single.type in refused[processor]:
                cause = refused[processor][single.type]
                if cause.startswith(processor):  # of any type
                    return Refusal(processor, cause)
                return Refusal(processor, cause, single.type, single.name)
        part = PartCost(operator.name, operator.type, "nominal", "", ONE_MS, ONE_W)
        return OperatorCost((part,), 0)

    rows = tuple(tuple(entry(op, p) for p in refused) for op in graph.operators)
    count = range(len(refused))
    matrix = tuple(tuple(0.0 if p == q else 1e-4 for q in count) for p in count)
    nothing = (0.0,) * len(refused)
    transfers = dict.fromkeys(graph.tensors, matrix)
    return CostTable(tuple(refused), rows, transfers, nothing, nothing, nothing, 0.0)


def candidates(graph, costs):
    parts = partition(graph)
    options = {}
    for choice, asked in enumerate(requests(graph, parts, costs)):
        placed = coarse(asked.problem, time_limit_s=10, seed=0)
        used = sum(1 << p for p in placed.used)
        option = Option(used, asked.locations_out, round(placed.makespan_s * 1e9), 0, choice)
        options.setdefault((asked.begin, asked.locations_in), []).append(option)
    units = len(parts.units)
    runs = StageTable(lambda u, locations: options.get((u, locations), ()), energy=False)
    return search(units, runs, costs.static_power_w)


def reasons(graph, **refused):
    """`refused`: the types that each processor does not run."""
    causes = {p: dict.fromkeys(types, Unlisted.TYPE) for p, types in refused.items()}
    costs = costs_of(graph, causes)
    return absent_kinds(candidates(graph, costs), graph, partition(graph), costs)


CHAIN = graph_of("Conv", "LRN", "Conv", "LRN", "Softmax")
# Two branches between an operator and their join.
DIAMOND = graph_of("Split", "LRN", "Einsum", "Concat", reads={2: (0,), 3: (1, 2)})


def test_nothing_is_absent_from_a_chain_that_three_processors_run():
    assert reasons(CHAIN, a=[], b=[], c=[]) == {}


def test_one_processor_leaves_the_sequential_kind_only():
    few = "it needs {} processors, and the platform has 1"
    expected = {"pipe-only": few.format(2), "para-only": few.format(2), "hybrid": few.format(3)}
    assert reasons(CHAIN, cpu=[]) == expected


def test_a_hybrid_needs_a_third_processor():
    assert reasons(CHAIN, a=[], b=[]) == {"hybrid": "it needs 3 processors, and the platform has 2"}


def test_the_sequential_kind_is_absent_where_every_processor_lacks_something():
    found = reasons(CHAIN, npu=["LRN", "Softmax"], dsp=["Conv"])
    assert found["sequential"] == (
        "no processor runs every operator: npu lacks LRN ('lrn1', 'lrn2') and Softmax "
        "('softmax1'); dsp lacks Conv ('conv1', 'conv2')"
    )


def test_a_processor_that_cannot_work_alone_names_its_operators_and_the_platforms_reason():
    found = reasons(CHAIN, npu=["LRN", "Softmax"], dsp=[])
    assert [name for name in found if name.endswith("-alone")] == ["npu-alone"]
    assert found["npu-alone"] == (
        "npu cannot run 3 of 5 operators: LRN ('lrn1', 'lrn2') and Softmax ('softmax1') – not "
        "among the allowed operators"
    )


def test_different_reasons_stand_apart():
    costs = costs_of(
        CHAIN,
        {
            "npu": {
                "LRN": "LRN is no sum over one axis",
                "Softmax": "npu computes in int8, not in float32",
            },
            "dsp": {},
        },
    )
    found = absent_kinds(candidates(CHAIN, costs), CHAIN, partition(CHAIN), costs)
    assert found["npu-alone"] == (
        "npu cannot run 3 of 5 operators: LRN ('lrn1', 'lrn2') – LRN is no sum over one axis; "
        "Softmax ('softmax1') – npu computes in int8, not in float32"
    )


def test_names_types_and_reasons_after_the_third_are_counted():
    types = ["Conv"] * 5 + ["LRN", "Sin", "Cos", "TopK", "Conv"]
    graph = graph_of(*types)
    rest = ["LRN", "Sin", "Cos", "TopK"]
    found = reasons(graph, npu=rest, dsp=["Conv"])
    assert found["dsp-alone"].startswith(
        "dsp cannot run 6 of 10 operators: Conv ('conv1', 'conv2', 'conv3' and 3 more)"
    )
    assert (
        "npu lacks LRN ('lrn1'), Sin ('sin1'), Cos ('cos1') and 1 of other types"
        in (found["sequential"])
    )
    costs = costs_of(graph, {"npu": {t: f"no {t}" for t in rest}, "dsp": {}})
    told = absent_kinds(candidates(graph, costs), graph, partition(graph), costs)["npu-alone"]
    assert told.endswith("Cos ('cos1') – no Cos; and 1 more for other reasons")


def test_of_a_fused_operator_the_part_is_named_that_cannot_run():
    conv, erf = graph_of("Conv", "Erf").operators
    fused = Operator(
        erf.id, conv.name, "", "Conv", {}, conv.inputs, erf.outputs, Work(1, 4, 4),
        (conv.name, erf.name), parts=(conv, erf),
    )  # fmt: skip
    tensors = {name: Tensor(name, (1,), "float32") for name in ("x", "t0", "t1")}
    graph = OperatorGraph(ModelSource("m", ""), "fused", (fused,), tensors, {}, ("x",), ("t1",))
    found = reasons(graph, npu=["Erf"], dsp=[])
    assert found["npu-alone"] == (
        "npu cannot run 1 of 1 operators: Erf ('erf1') – not among the allowed operators"
    )


def test_of_two_parts_of_a_type_the_one_is_named_that_cannot_run():
    first, second = graph_of("Conv", "Conv").operators
    fused = Operator(
        second.id, first.name, "", "Conv", {}, first.inputs, second.outputs, Work(1, 4, 4),
        (first.name, second.name), parts=(first, second),
    )  # fmt: skip
    tensors = {name: Tensor(name, (1,), "float32") for name in ("x", "t0", "t1")}
    graph = OperatorGraph(ModelSource("m", ""), "fused", (fused,), tensors, {}, ("x",), ("t1",))
    costs = costs_of(graph, {"npu": {"Conv": "too large"}, "dsp": {}})
    refusal = replace(costs.unsupported(0, 0), operator=second.name)
    costs = replace(costs, entries=((refusal, costs.entries[0][1]),))
    found = absent_kinds(candidates(graph, costs), graph, partition(graph), costs)
    assert found["npu-alone"] == "npu cannot run 1 of 1 operators: Conv ('conv2') – too large"


def test_a_processor_that_runs_nothing_is_no_second_one():
    found = reasons(CHAIN, npu=["Conv", "LRN", "Softmax"], dsp=[])
    told = (
        "it needs 2 processors, and only dsp can run operators of this model: npu lacks Conv "
        "('conv1', 'conv2'), LRN ('lrn1', 'lrn2') and Softmax ('softmax1')"
    )
    assert (found["pipe-only"], found["para-only"]) == (told, told)


def test_a_model_of_one_piece_cannot_be_cut():
    graph = graph_of("LRN", "Einsum", "Concat", reads={1: (), 2: (0, 1)})
    assert len(partition(graph).units) == 1
    told = "the model cannot be cut into stages between 'lrn1' (LRN) and 'concat1' (Concat)"
    found = reasons(graph, a=[], b=[], c=[])
    assert (found["pipe-only"], found["hybrid"]) == (told, told)


def test_branches_that_no_processor_runs_all_of_tear_every_single_stage():
    found = reasons(DIAMOND, npu=["LRN"], dsp=["Einsum"])
    assert found["pipe-only"] == (
        "no processor runs all operators from 'lrn1' (LRN) to 'concat1' (Concat), between which "
        "there is no place to cut: npu lacks LRN ('lrn1'); dsp lacks Einsum ('einsum1')"
    )
    assert "para-only" not in found


def test_who_runs_neither_end_can_have_no_stage_beside_who_runs_all():
    found = reasons(CHAIN, npu=["Conv", "Softmax"], dsp=[])
    assert found["pipe-only"] == (
        "no processor but dsp can begin or end the model: npu lacks Conv ('conv1') and Softmax "
        "('softmax1')"
    )


def test_stages_run_out_where_processors_would_have_to_come_back():
    found = reasons(graph_of("Conv", "LRN", "Conv"), npu=["LRN"], dsp=["Conv"])
    assert found["pipe-only"] == (
        "stages of one processor each get no further than npu up to 'conv1' (Conv), then dsp up "
        "to 'lrn1' (LRN); next comes 'conv2' (Conv), which only npu can run, and a processor has "
        "one stage only"
    )
    assert "para-only" not in found


def test_no_hybrid_where_every_cut_needs_one_processor_on_both_sides():
    found = reasons(graph_of("A", "B", "C", "A", "B", "C"), a=["B", "C"], b=["A", "C"], c="AB")
    assert found["hybrid"] == (
        "no place to cut suits both sides: with a and b before it and c behind, say, "
        "a and b cannot run 'c1' (C), and c cannot run 'b2' (B), which comes later"
    )


def test_no_hybrid_where_one_processor_has_to_begin_and_to_end():
    found = reasons(graph_of("X", "B", "Y"), a=[], b=["X", "Y"], c=["X", "Y"])
    assert found["hybrid"] == (
        "only a can begin or end the model: b and c cannot run 'x1' (X) at its beginning, nor "
        "'y1' (Y) at its end"
    )


def test_where_support_forbids_nothing_the_mapper_is_named():
    graph = graph_of("Conv", "Conv")
    costs = costs_of(graph, {"a": {}, "b": {}, "c": {}})
    alone = [c for c in candidates(graph, costs) if c.kind in ("sequential", "pipe-only")]
    found = absent_kinds(alone, graph, partition(graph), costs)
    assert found == {
        "para-only": "the mapper found no use for a second processor beside the first",
        "hybrid": "the mapper found no use for two processors in a stage beside another stage",
    }
    early = absent_kinds(alone, graph, partition(graph), costs, complete=False)
    assert early["hybrid"] == "the search ended before there was one"


supports = st.integers(2, 3).flatmap(
    lambda processors: st.lists(
        st.integers(1, (1 << processors) - 1), min_size=2, max_size=6
    ).map(lambda masks: (processors, masks))
)  # fmt: skip


# Operators that need each of three processors, others, then again some that need each.
scarce = st.tuples(
    st.permutations([1, 2, 4]), st.lists(st.integers(1, 7), max_size=2), st.permutations([1, 2, 4])
).map(lambda parts: [mask for part in parts for mask in part])


def chain_with(masks, processors):
    """Operator v of a chain has a type of its own and runs on the processors of masks[v]."""
    types = [f"T{v}" for v in range(len(masks))]
    graph = graph_of(*types)
    refused = {
        f"p{p}": [t for t, mask in zip(types, masks, strict=True) if not mask >> p & 1]
        for p in range(processors)
    }
    return graph, refused


def exists(kind, masks, processors):
    """Brute force over contiguous stages on disjoint sets; a set must find work for each member."""
    n = len(masks)
    sets = range(1, 1 << processors)
    for stages in range(1, min(n, processors) + 1):
        for cuts in combinations(range(1, n), stages - 1):
            edges = [0, *cuts, n]
            for chosen in permutations(sets, stages):
                if any(a & b for a, b in combinations(chosen, 2)):
                    continue
                parts = [masks[edges[i] : edges[i + 1]] for i in range(stages)]
                parallel = any(each.bit_count() > 1 for each in chosen)
                if KINDS[2 * parallel if stages == 1 else 1 + 2 * parallel] == kind and all(
                    shared(each, part) for each, part in zip(chosen, parts, strict=True)
                ):
                    return True
    return False


def shared(chosen, part):
    """Whether a set of processors can run the part with every member at work."""
    members = [1 << p for p in range(chosen.bit_length()) if chosen >> p & 1]
    return all(chosen & mask for mask in part) and any(
        all(part[v] & member for v, member in zip(picked, members, strict=True))
        for picked in permutations(range(len(part)), len(members))
    )


@given(supports)
def test_exactly_the_kinds_that_brute_force_does_not_find_have_a_reason(drawn):
    processors, masks = drawn
    graph, refused = chain_with(masks, processors)
    found = reasons(graph, **refused)
    expected = [kind for kind in KINDS if not exists(kind, masks, processors)]
    assert [name for name in found if not name.endswith("-alone")] == expected
    alone = [f"p{p}-alone" for p in range(processors) if not all(mask >> p & 1 for mask in masks)]
    assert [name for name in found if name.endswith("-alone")] == alone


@given(scarce)
def test_stages_of_one_processor_get_as_far_as_brute_force_and_no_further(masks):
    processors = 3
    graph, refused = chain_with(masks, processors)
    told = reasons(graph, **refused)["pipe-only"]

    def reach(order):
        end = 0
        for p in order:
            while end < len(masks) and masks[end] >> p & 1:
                end += 1
        return end

    furthest = max(reach(order) for order in permutations(range(processors)))
    stuck = re.search(r"next comes 't(\d+)1' .* which only (.*) can run,", told)
    assert stuck is not None
    assert int(stuck[1]) == furthest
    assert stuck[2].split(" and ") == [
        f"p{p}" for p in range(processors) if masks[furthest] >> p & 1
    ]


@given(scarce)
def test_an_impossible_cut_names_operators_that_its_sides_cannot_run(masks):
    graph, refused = chain_with(masks, 3)
    told = reasons(graph, **refused)["hybrid"]
    found = re.search(r"say, (.*) cannot run 't(\d+)1' .*, and (.*) cannot run 't(\d+)1'", told)
    assert found is not None
    early, late = int(found[2]), int(found[4])
    for names, v in ((found[1], early), (found[3], late)):
        assert not masks[v] & sum(1 << int(name[1:]) for name in names.split(" and "))
    assert early <= late


@settings(max_examples=25)
@given(st.lists(st.integers(1, 7), min_size=7, max_size=7))
def test_reasons_are_found_with_branches_too_and_name_operators_of_the_model(masks):
    types = [f"T{v}" for v in range(7)]
    graph = graph_of(*types, reads={2: (0,), 3: (1, 2), 5: (3,), 6: (4, 5)})
    refused = {
        f"p{p}": [t for t, mask in zip(types, masks, strict=True) if not mask >> p & 1]
        for p in range(3)
    }
    for reason in reasons(graph, **refused).values():
        assert {*re.findall(r"'(.*?)'", reason)} <= {operator.name for operator in graph.operators}
