"""The same network with its nodes in another order, as another exporter may list them."""

from dataclasses import replace


def shuffled(graph, rng):
    """Return an operator graph with its operators in a random topological order."""
    operators, made = list(graph.operators), set(graph.inputs)
    order = []
    while operators:
        ready = [each for each in operators if made.issuperset(graph.reads(each))]
        order.append(rng.choice(ready))
        operators.remove(order[-1])
        made.update(order[-1].outputs)
    return replace(graph, operators=tuple(order))
