"""States: outputs of a step that are inputs of the next one, such as a key-value cache.

Two kinds are told apart. A *state* is the same tensor: what one step writes, the next one reads.
A *token* is chosen of an output outside of the model, as the next word of the logits: it is small,
but the next step waits for it all the same.

States are recognised by the names that exporters give them, where the shapes fit:

- `past_key_values.0.key` and `present.0.key` or `present_key_values.0.key`, `past_0` and
  `present_0`, `past_conv.3` and `present_conv.3`;
- `cached_len_1` and `new_cached_len_1`, `state` and `new_state` or `stateN`, `h` and `hn`,
  `h_0` and `h_n`, `r1i` and `r1o`;
- `NAME_in` and `NAME_out`, `prev_NAME` and `next_NAME`, where the name says state, hidden, cell,
  cache, memory, or is `h` or `c`.

Where a cache is recognised and a step reads one token (`input_ids`, of shape batch × 1), that one
is chosen of `logits`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import OperatorGraph, State, Tensor

NONE = "none"  # in place of an output: the input is no state
TOKEN_INPUTS = ("input_ids", "decoder_input_ids", "tokens")
TOKEN_OUTPUT = "logits"

_STATEFUL = re.compile(
    r"(?:^|[._/])(?:h|c|r\d+|rnn|gru|lstm)(?:$|[._/\d])|state|hidden|cell|cach|mem"
)
_OUTPUTS: Sequence[tuple[re.Pattern[str], Sequence[str]]] = (
    (re.compile(r"^past_key_values(.*)$"), (r"present\1", r"present_key_values\1")),
    (re.compile(r"^past(.*)$"), (r"present\1",)),
    (re.compile(r"^(.*)\bpast(.*)$"), (r"\1present\2",)),
    (re.compile(r"^(.*[._])?([hc])_?0$"), (r"\1\2n", r"\1\2_n")),
    (re.compile(r"^(r\d+)i$"), (r"\1o",)),
)
"""Inputs that are states whatever else they are called, and what the outputs are called."""
_STATEFUL_OUTPUTS: Sequence[tuple[re.Pattern[str], Sequence[str]]] = (
    (re.compile(r"^(.*)$"), (r"new_\1", r"next_\1", r"\1N", r"\1n", r"\1_n", r"\1_new",
                             r"\1_next", r"\1_out", r"out_\1", r"\1_output", r"output_\1")),
    (re.compile(r"^(.*)_in$"), (r"\1_out", r"\1")),
    (re.compile(r"^in_(.*)$"), (r"out_\1",)),
    (re.compile(r"^(.*)_input$"), (r"\1_output",)),
    (re.compile(r"^(?:prev|previous|last|initial|init|old)_(.*)$"),
     (r"\1", r"next_\1", r"new_\1", r"final_\1")),
    (re.compile(r"^(.*)_(?:prev|previous|initial|init|old)$"), (r"\1", r"\1_next", r"\1_new")),
)  # fmt: skip
"""Likewise, where the name speaks of a state."""


def with_states(
    graph: OperatorGraph, stated: Mapping[str, str] | None, sequences: int
) -> OperatorGraph:
    """Return a graph with its states, and how many sequences take turns on it.

    Raises
    ------
    ModelError
        As `states_of` does; or there are several sequences, and no state.
    """
    inputs, outputs = (
        [graph.tensors[name] for name in names if name in graph.tensors]
        for names in (graph.inputs, graph.outputs)
    )
    states = states_of(graph.source.name, inputs, outputs, stated or {})
    if sequences > 1 and not states:
        raise ModelError(
            f"'{graph.source.name}' has no state that is recognised, so sequences make no "
            "difference; name what is fed back with --state INPUT=OUTPUT, or leave out --sequences"
        )
    return replace(graph, states=states, sequences=sequences)


def states_of(
    model: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    stated: Mapping[str, str],
) -> tuple[State, ...]:
    """Return the states of a model, those that are recognised and those that the user states.

    Parameters
    ----------
    model
        What to call it in messages.
    inputs, outputs
        Of the graph, with their shapes at this step.
    stated
        Output by input, "none" if it is no state: it counts before what is recognised.

    Raises
    ------
    ModelError
        If what is stated is no input or output of the graph, or an output of two states; names
        every mistake.
    """
    reads, makes = ({each.name: each for each in some} for some in (inputs, outputs))
    unknown = [f"--state {a}={b}: there is no input '{a}'" for a, b in stated.items()
               if a not in reads]  # fmt: skip
    unknown += [f"--state {a}={b}: there is no output '{b}'" for a, b in stated.items()
                if b != NONE and b not in makes]  # fmt: skip
    if unknown:
        raise ModelError(
            f"'{model}': {'; '.join(unknown)}; its inputs are {listed(list(reads))}, its outputs "
            f"{listed(list(makes))}"
        )
    given = {a: b for a, b in stated.items() if b != NONE}
    if twice := {b: [a for a in given if given[a] == b] for b in given.values()}:
        wrong = [f"'{b}' is fed back to {listed(some)}" for b, some in twice.items() if some[1:]]
        if wrong:
            raise ModelError(f"'{model}': {'; '.join(wrong)}: an output is one state")
    recognised = dict(_recognised(reads, makes, {*given.values()}))
    pairs = {**{a: b for a, b in recognised.items() if a not in stated}, **given}
    if any(is_cache(name) for name in pairs):
        chosen = next((a for a in TOKEN_INPUTS if a in reads and a not in stated), None)
        if chosen and TOKEN_OUTPUT in makes and _is_one_token(reads[chosen]):
            pairs[chosen] = TOKEN_OUTPUT
    order = {name: i for i, name in enumerate(reads)}
    return tuple(
        State(a, pairs[a], "state" if _fits(reads[a], makes[pairs[a]]) else "token")
        for a in sorted(pairs, key=order.__getitem__)
    )


def _recognised(
    reads: Mapping[str, Tensor], makes: Mapping[str, Tensor], taken: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield inputs and the outputs that are fed back to them, by their names."""
    taken = set(taken)
    for name, tensor in reads.items():
        for output in _names_of_output(name):
            if output in makes and output not in taken and _fits(tensor, makes[output]):
                taken.add(output)
                yield name, output
                break


def _names_of_output(name: str) -> Iterator[str]:
    """Yield what the output of a state may be called, given its input."""
    rules = [*_OUTPUTS, *(_STATEFUL_OUTPUTS if _STATEFUL.search(name.lower()) else ())]
    for pattern, outputs in rules:
        if match := pattern.match(name):
            for each in outputs:
                if (output := match.expand(each)) != name:
                    yield output


def _fits(read: Tensor, made: Tensor) -> bool:
    """Tell whether an output may be the input of the next step: it may have grown along an axis."""
    if read.dtype != made.dtype or len(read.shape) != len(made.shape):
        return False
    grown = [a != b for a, b in zip(read.shape, made.shape, strict=True)]
    return sum(grown) <= 1 and all(a <= b for a, b in zip(read.shape, made.shape, strict=True))


def is_cache(name: str) -> bool:
    """Tell whether an input is called as a key-value cache is."""
    return name.startswith("past") or "cache" in name


def _is_one_token(tensor: Tensor) -> bool:
    return tensor.dtype in {"int64", "int32"} and len(tensor.shape) == 2 and tensor.shape[1] == 1


def longest_loop_path(graph: OperatorGraph, least_s: Sequence[float]) -> tuple[int, ...]:
    """Return operators, one reading from the other, that a loop of a state takes at least.

    Parameters
    ----------
    least_s
        Seconds of each operator where it is fastest.

    Returns
    -------
    Of all states, the path that takes longest; empty if no state is written of what is read of it.
    """
    best: tuple[float, tuple[int, ...]] = (0.0, ())
    before = [graph.predecessors(v) for v in range(len(graph.operators))] if graph.states else []
    for state in graph.states:
        producer = graph.producer.get(state.output)
        readers = graph.consumers.get(state.input, ())
        if producer is None or not readers:
            continue
        reached: dict[int, tuple[float, int]] = {v: (least_s[v], -1) for v in readers}
        for v in range(min(readers), producer + 1):
            for u in before[v]:
                if u in reached and reached[u][0] + least_s[v] > reached.get(v, (0.0, -1))[0]:
                    reached[v] = (reached[u][0] + least_s[v], u)
        if producer in reached and reached[producer][0] > best[0]:
            path, v = [], producer
            while v >= 0:
                path.append(v)
                v = reached[v][1]
            best = reached[producer][0], tuple(reversed(path))
    return best[1]
