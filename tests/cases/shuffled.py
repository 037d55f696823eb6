"""Networks with heads, side inputs and forks, and the same with nodes in another order."""

from dataclasses import replace

from parapipe.graph.operator_graph import ModelSource, Operator, OperatorGraph, Tensor, Work


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


def scattered(rng, operators):
    """Operators that read some of the tensors before them, with heads, side inputs and forks."""
    made, tensors = [], ["x", "y"]
    for v in range(operators):
        near = tensors[-rng.choice([2, 4, operators]) :]
        reads = rng.sample(near, min(len(near), rng.choice([1, 1, 2, 3])))
        outputs = tuple(f"t{v}.{i}" for i in range(rng.choice([1, 1, 1, 2])))
        work = Work(rng.choice([0, 1, 1000]), rng.randint(1, 9), rng.randint(1, 9))
        made.append(Operator(outputs[0], f"op{v}", "", "Conv", {}, tuple(reads), outputs, work, ()))
        tensors += outputs
    read = {name for each in made for name in each.inputs}
    outputs = [each.outputs[0] for each in made if not read & {*each.outputs}]
    return OperatorGraph(
        ModelSource("random", ""), "onnx", tuple(made),
        {name: Tensor(name, (1,), "float32") for name in tensors}, {},
        tuple(name for name in ("x", "y") if name in read), tuple(outputs),
    )  # fmt: skip


def operators_of(reads):
    """Return operators a, b, ... that read the tensors named, x being the model's input."""
    made = [
        Operator(name, name, "", "Conv", {}, tuple(names), (name,), Work(1, 4, 4), ())
        for name, names in reads.items()
    ]
    tensors = {name: Tensor(name, (1,), "float32") for name in ["x", *reads]}
    read = {each for names in reads.values() for each in names}
    outputs = tuple(name for name in reads if name not in read)
    return OperatorGraph(ModelSource("", ""), "onnx", tuple(made), tensors, {}, ("x",), outputs)


def residual(rng, operators):
    """Operators in a chain with skip connections around some of them, and now and then a branch."""
    reads = {"o0": ["x"]}
    skipped = "o0"  # what the next skip connection brings
    for v in range(1, operators):
        reads[f"o{v}"] = [f"o{v - 1}"]
        if rng.random() < 0.3:
            reads[f"o{v}"] = sorted({f"o{v - 1}", skipped})
            skipped = f"o{v}"
    return operators_of(reads)
