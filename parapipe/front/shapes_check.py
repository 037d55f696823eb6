"""Checks shapes.json by the plans and the fronts beside it, without knowing how it was made.

Where states go follows from the plans, and so does what weights take in each memory: of each shape,
what its processors need there, and once what several shapes need. Times of transfers and static
power stand in no plan: of them it is checked that all sums are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose

from parapipe.cost.precision import type_there
from parapipe.documents.build_request import Request
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument
from parapipe.errors import PlanError
from parapipe.graph.operator_graph import OperatorGraph, size_in_bytes
from parapipe.pareto import TIE
from parapipe.plan.mapped import MappedPlan, mapping_view, network_of
from parapipe.plan.schema import Plan

RELATIVE = 1e-9
_Weight = tuple[str, str, str, str, int]
"""Name, data type, memory, processor whose own copy it is or "", bytes."""


@dataclass(frozen=True)
class ShapesFolder:
    """What a folder of several shapes holds.

    Parameters
    ----------
    fronts
        By shape.
    plans
        By shape and id, of every placement that the document names.
    """

    document: ShapesDocument
    fronts: Mapping[str, FrontDocument]
    plans: Mapping[tuple[str, str], Plan]

    def violations(self) -> Iterator[str]:
        """Yield what is wrong."""
        rows = self.document.configurations
        if list(rows) != sorted(rows, key=lambda row: row.request_s):
            yield "the configurations do not stand by the time of a request"
        if len({row.id for row in rows}) < len(rows):
            yield "two configurations have one id"
        for row in rows:
            yield from (f"{row.id}: {text}" for text in self._row_violations(row))
        yield from self._front_violations()

    def _row_violations(self, row: CombinationRow) -> Iterator[str]:
        yield from self._step_violations(row)
        yield from self._move_violations(row)
        spent_s = sum(each.steps_s for each in row.placements.values())
        request_s = spent_s + sum(each.time_s for each in row.moves)
        if not isclose(row.request_s, request_s, rel_tol=RELATIVE):
            yield f"a request takes {request_s:.9g} s, not {row.request_s:.9g}"
        if not isclose(row.requests_per_second * row.request_s, 1, rel_tol=RELATIVE):
            yield "the throughput is not the reciprocal of a request's time"
        least_j = sum(each.energy_j for each in row.placements.values())
        if row.energy_j < least_j * (1 - RELATIVE):
            yield f"a request takes {least_j:.9g} J at least, not {row.energy_j:.9g}"
        if not row.moves and row.energy_j > least_j * (1 + RELATIVE):
            yield f"nothing moves, and a request takes {row.energy_j:.9g} J, not {least_j:.9g}"
        yield from self._token_violations(row)
        yield from self._memory_violations(row)

    def _token_violations(self, row: CombinationRow) -> Iterator[str]:
        """Compare the figures of tokens with those by the plans; there are none of others."""
        plans = {name: self._plan(row, name) for name in row.placements}
        try:
            request = Request.of(self.document, row, plans, None)
        except PlanError:
            if row.first_token_s or row.tokens_per_second or row.energy_per_token_j:
                yield "it has figures of tokens, and its last steps read none that is fed back"
            return
        wanted = {
            "first_token_s": request.first_token_s,
            "tokens_per_second": request.answer.steps / request.answer_s,
        }
        for name, value in wanted.items():
            if not isclose(stated := getattr(row, name) or 0.0, value, rel_tol=RELATIVE):
                yield f"{name} is {value:.9g} by the plans, not {stated:.9g}"
        yield from _token_energy_violations(row, request)

    def _step_violations(self, row: CombinationRow) -> Iterator[str]:
        """Compare each placement with its plan, and its steps with their number."""
        for shape in self.document.shapes:
            stated, plan = row.placements[shape.name], self._plan(row, shape.name)
            predicted, steps = plan.predicted, shape.steps
            steps_s = predicted.latency_s + (steps - 1) * predicted.period_s if steps else 0.0
            extra_s = max(0.0, steps_s - steps * predicted.period_s)
            least_j = steps * predicted.energy_j
            if not isclose(stated.latency_s, predicted.latency_s, rel_tol=RELATIVE):
                yield f"{shape.name} takes {predicted.latency_s:.9g} s by its plan {stated.id}"
            if not isclose(stated.steps_s, steps_s, rel_tol=RELATIVE, abs_tol=1e-15):
                yield f"{steps} steps of {shape.name} take {steps_s:.9g} s"
            equal = isclose(stated.energy_j, least_j, rel_tol=RELATIVE, abs_tol=1e-15)
            more = extra_s > RELATIVE * steps_s and stated.energy_j > least_j
            if not (equal or more):
                yield f"{steps} steps of {shape.name} take {least_j:.9g} J by its plan {stated.id}"

    def _move_violations(self, row: CombinationRow) -> Iterator[str]:
        """Compare moves with where plans write and read states."""
        needed: Counter[tuple[str, str, str]] = Counter()
        sizes: Counter[tuple[str, str, str]] = Counter()
        for begin, end, state in self._hand_overs(row):
            writer, reader = self._plan(row, begin), self._plan(row, end)
            output = next(each.output for each in writer.states or () if each.input == state)
            sources = _processors(writer, [o.id for o in writer.operators if output in o.outputs])
            readers = [o.id for o in reader.operators if state in o.inputs]
            for target in _processors(reader, readers):
                if sources - {target}:
                    key = begin, end, target
                    needed[key] += 1
                    tensor = writer.tensors[output]
                    sizes[key] += size_in_bytes(tensor.shape, tensor.dtype) or 0
        stated: Counter[tuple[str, str, str]] = Counter()
        stated_bytes: Counter[tuple[str, str, str]] = Counter()
        for move in row.moves:
            stated[move.begin, move.end, move.target] += move.states
            stated_bytes[move.begin, move.end, move.target] += move.size_bytes
        for begin, end, target in sorted({*needed, *stated}):
            key = begin, end, target
            if (needed[key], sizes[key]) != (stated[key], stated_bytes[key]):
                yield (
                    f"from {begin} to {end}, {needed[key]} states of {sizes[key]} bytes go to "
                    f"'{target}', not {stated[key]} of {stated_bytes[key]}"
                )

    def _hand_overs(self, row: CombinationRow) -> Iterator[tuple[str, str, str]]:
        """Yield states that go from one shape to another: none between buckets."""
        last: dict[str, str] = {}
        for shape in self.document.shapes if self.document.bucket is None else ():
            if shape.steps:
                states = self._plan(row, shape.name).states or ()
                names = [each.input for each in states if each.kind == "state"]
                yield from ((last[name], shape.name, name) for name in names if name in last)
                last |= dict.fromkeys(names, shape.name)

    def _memory_violations(self, row: CombinationRow) -> Iterator[str]:
        """Compare the memories with the fronts of the shapes, and weights with the plans."""
        of_shapes = {name: self._front_row(row, name).memories for name in row.placements}
        weights = {each for name in row.placements for each in self._weights(row, name)}
        for at, memory in enumerate(row.memories):
            weights_bytes = sum(each[-1] for each in weights if each[2] == memory.name)
            own = [some[at] for some in of_shapes.values()]
            segments_bytes = sum(each.segments_bytes or 0 for each in own)
            working_bytes = max(each.peak_bytes - each.constant_bytes for each in own)
            peak_bytes = memory.weights_bytes + segments_bytes + working_bytes
            if memory.weights_bytes != weights_bytes:
                yield (
                    f"weights take {weights_bytes} bytes of '{memory.name}', each once, not "
                    f"{memory.weights_bytes}"
                )
            if memory.peak_bytes != peak_bytes:
                yield f"'{memory.name}' needs {peak_bytes} bytes, not {memory.peak_bytes}"
        most_bytes = sum(each.peak_bytes for each in row.memories)
        least_bytes = max((each.peak_bytes for each in row.memories), default=0)
        if not least_bytes <= row.memory_bytes <= most_bytes:
            yield f"all memories need {least_bytes} to {most_bytes} bytes, not {row.memory_bytes}"

    def _weights(self, row: CombinationRow, shape: str) -> Iterator[_Weight]:
        """Yield the copies of weights that a plan needs."""
        plan, factors = self._plan(row, shape), self.document.weight_factors
        system = plan.memory.system if plan.memory else None
        assert system is not None, "plans of today state their memories"
        types = {each.name: each.data_type for each in self.fronts[shape].processors}
        network: OperatorGraph = network_of(plan)
        for operator in network.operators:
            names = {n for each in (operator, *operator.parts) for n in each.inputs}
            for p in _processors(plan, [operator.id]):
                m = system.memory_of[p]
                for name in names:
                    if constant := network.constants.get(name):
                        dtype = constant.stored or type_there(constant.dtype, types[p])
                        size_bytes = size_in_bytes(constant.shape, dtype) or 0
                        size_bytes += constant.scale_bytes
                        content_bytes = size_bytes * factors.get(p, 1.0)
                        owner = p if p in factors else ""
                        taken_bytes = system.size_bytes(m, content_bytes)
                        yield name, dtype, system.names[m], owner, taken_bytes

    def _front_violations(self) -> Iterator[str]:
        """Compare the marks with the figures of all rows."""
        rows = self.document.configurations
        figures = [self._objectives(row) for row in rows]
        for row, own in zip(rows, figures, strict=True):
            beaten = any(
                all(a <= b * (1 + TIE) for a, b in zip(other, own, strict=True))
                and any(a < b * (1 - TIE) for a, b in zip(other, own, strict=True))
                for other in figures
            )
            if beaten and row.pareto:
                yield f"{row.id} is marked as on the front, and another one beats it"

    def _objectives(self, row: CombinationRow) -> tuple[float, ...]:
        wanted = self.document.objectives
        latencies_s = (each.latency_s for each in row.placements.values())
        energy, memory = "energy" in wanted, "memory" in wanted
        more = (*(row.energy_j,) * energy, *(float(row.memory_bytes),) * memory)
        return (*latencies_s, row.request_s, *more)

    def _plan(self, row: CombinationRow, shape: str) -> Plan:
        return self.plans[shape, row.placements[shape].id]

    def _front_row(self, row: CombinationRow, shape: str) -> ConfigurationRow:
        return self.fronts[shape].configuration(row.placements[shape].id)


def _token_energy_violations(row: CombinationRow, request: Request) -> Iterator[str]:
    """Compare the energy of a token with that of all steps, and of what moves before them.

    Of all moves together the document says what they take: the last ones take that or less.
    """
    if row.energy_per_token_j is None:  # an older version wrote it
        return
    answer, tokens = request.answer, request.answer.steps * request.sequences
    steps_j = row.placements[answer.name].energy_j
    moves_j = row.energy_j - sum(each.energy_j for each in row.placements.values())
    last = {each.end == answer.name for each in row.moves}
    least_j = (steps_j + moves_j * (last == {True})) / tokens
    most_j = (steps_j + moves_j * (True in last)) / tokens
    slack_j = RELATIVE * row.energy_j / tokens
    if not least_j - slack_j <= row.energy_per_token_j <= most_j + slack_j:
        of = f"{least_j:.9g}" if least_j == most_j else f"{least_j:.9g} to {most_j:.9g}"
        yield f"energy_per_token_j is {of} by the plans, not {row.energy_per_token_j:.9g}"


def _processors(plan: Plan, operators: list[str]) -> set[str]:
    """Return the names of the processors that run operators, those in turn included."""
    view: MappedPlan = mapping_view(plan)
    on = {view.placements[name].processor for name in operators}
    every = {q for p in on for q in view.mapping.replicas.get(p, (p,))}
    return {view.resources[p] for p in every}
