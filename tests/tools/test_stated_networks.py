"""Networks without shapes are matched to the zoo's graphs by structure alone."""

from parapipe import load_model
from tools.stated_networks import StatedOperator, match


def stated_like(graph, without=()):
    """Return a graph's operators as the source writes them, but for types that it has not."""
    kept = [operator for operator in graph.operators if operator.type not in without]
    names = {operator.id: f"node{i}" for i, operator in enumerate(kept)}
    return [
        StatedOperator(
            "GoogLeNet", names[each.id], each.type,
            tuple(
                names[other.id] for other in kept if set(each.outputs) & set(graph.reads(other))
            ),
            0.0, 0.0, 1e-6, 1e-6,
        )
        for each in kept
    ]  # fmt: skip


def test_each_operator_is_found_and_a_missing_softmax_hides_no_other_one():
    graph = load_model("zoo:googlenet", granularity="onnx")
    for without in ((), ("Softmax",)):
        stated = stated_like(graph, without)
        kept = [each for each in graph.operators if each.type not in without]
        found = match(stated, graph)
        assert [found[each.name] for each in stated] == kept


def test_operators_behind_one_of_another_type_have_no_counterpart():
    graph = load_model("zoo:googlenet", granularity="onnx")
    stated = stated_like(graph)
    spoilt = [
        StatedOperator(each.network, each.name, "LRN" if i == 9 else each.type, each.successors,
                       0.0, 0.0, None, 1e-6)
        for i, each in enumerate(stated)
    ]  # fmt: skip
    assert match(spoilt, graph) == {}
