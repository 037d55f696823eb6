"""The independent verifier: nobody sees a schedule that it has not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import fsum, isfinite, ulp

from parapipe.errors import VerificationError
from parapipe.files.mistakes import listed_sentences
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Answer, Energies, Schedule, Transfer


def verify(problem: MappingProblem, schedule: Schedule, energy_j: Energies | None = None) -> None:
    """Check a schedule against its problem; return if every rule holds.

    The rules: every operator has one processor, which supports it; it runs for the time that the
    processor needs; it starts at 0 or later; a processor runs one operator at a time; an operator
    starts when its inputs have arrived, a tensor made on p or located on p arriving on q
    `transfer_s[p][q]` later; every transfer that occupies a resource stands there once, and none
    else, lasts as long, begins when the tensor is made or later, ends before its consumers start,
    and shares its resource with no operator and no other transfer; all numbers are finite; a
    certificate claims no bound above its objective, nor above the makespan if it speaks of that;
    the energy that it claims is the operators', and no bound on it lies above.

    Times are sums of doubles, and different orders of summation round differently: comparisons
    allow one unit in the last place of the largest number involved for each operator, far below a
    picosecond in practice.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p, needed where the certificate
        speaks of energy.

    Raises
    ------
    VerificationError
        If a rule is broken; lists every violation.
    """
    counts = {len(schedule.processor), len(schedule.start_s), len(schedule.end_s)}
    if counts != {problem.operators}:
        mistakes = [
            (
                f"it gives {len(schedule.processor)} processors, {len(schedule.start_s)} starts "
                f"and {len(schedule.end_s)} ends for {problem.operators} operators"
            )
        ]
    else:
        mistakes = [*_Check(problem, schedule).violations(energy_j)]
    if mistakes:
        raise VerificationError(f"the schedule is wrong: {listed_sentences(mistakes)}", mistakes)


def verify_answer(
    problem: MappingProblem, answer: Answer, energy_j: Energies | None = None
) -> None:
    """Check every schedule of an answer, and that none is better in both time and energy.

    Raises
    ------
    VerificationError
        If a rule is broken.
    """
    for schedule in answer.schedules:
        verify(problem, schedule, energy_j)
    wrong = []
    if not answer.schedules:
        wrong.append("it holds no schedule")
    elif any(schedule.certificate.energy is None for schedule in answer.schedules[1:]):
        wrong.append("it does not say what energy its schedules take")
    elif any(
        one.makespan_s >= other.makespan_s or one.energy_j <= other.energy_j
        for one, other in pairwise(answer.schedules)
    ):
        wrong.append("its times do not ascend while its energies descend")
    if not answer.resolution >= 0:
        wrong.append(f"its resolution is {answer.resolution}")
    if wrong:
        raise VerificationError(f"the set of schedules is wrong: {'; '.join(wrong)}", wrong)


@dataclass(slots=True)
class _Check:
    """One schedule being read.

    Parameters
    ----------
    well_formed
        Operators on a processor that supports them, with finite times; of others nothing is said.
    """

    problem: MappingProblem
    schedule: Schedule
    well_formed: frozenset[int] = field(init=False)
    tolerance_s: float = field(init=False)

    def violations(self, energy_j: Energies | None) -> Iterator[str]:
        schedule = self.schedule
        times = chain(
            schedule.start_s,
            schedule.end_s,
            (max(map(max, flow.transfer_s)) for flow in self.problem.flows),
            (t for moved in schedule.transfers for t in (moved.start_s, moved.end_s)),
        )
        largest = max((abs(t) for t in times if isfinite(t)), default=0.0)
        self.tolerance_s = (self.problem.operators + len(schedule.transfers) + 2) * ulp(largest)
        reasons = {v: self._malformed(v) for v in range(self.problem.operators)}
        self.well_formed = frozenset(v for v, reason in reasons.items() if not reason)
        yield from filter(None, reasons.values())
        yield from self._durations()
        yield from self._arrivals()
        needed = set(self._needed_transfers())
        yield from self._count_transfers(needed)
        expected = [moved for moved in schedule.transfers if (moved.flow, moved.target) in needed]
        finite = [moved for moved in expected if isfinite(moved.start_s) and isfinite(moved.end_s)]
        for moved in expected:
            if moved in finite:
                yield from self._transfer_times(moved)
            else:
                yield f"{_name(moved)} goes from {moved.start_s} s to {moved.end_s} s, not finite"
        yield from self._overlaps(finite)
        yield from self._certificate()
        yield from self._energy_claim(energy_j)

    def _malformed(self, v: int) -> str | None:
        """Return why nothing else can be said of operator v, if so."""
        p = self.schedule.processor[v]
        start_s, end_s = self.schedule.start_s[v], self.schedule.end_s[v]
        if not 0 <= p < self.problem.processors:
            return f"operator {v} runs on processor {p}, and there are {self.problem.processors}"
        if not isfinite(self.problem.time_s[v][p]):
            return f"operator {v} runs on processor {p}, which does not support it"
        if not (isfinite(start_s) and isfinite(end_s)):
            return f"operator {v} runs from {start_s} s to {end_s} s, which are not both finite"
        return None

    def _durations(self) -> Iterator[str]:
        for v in sorted(self.well_formed):
            start_s, end_s = self.schedule.start_s[v], self.schedule.end_s[v]
            p = self.schedule.processor[v]
            needed_s = self.problem.time_s[v][p]
            if start_s < -self.tolerance_s:
                yield f"operator {v} starts at {start_s:.9g} s, before 0"
            if abs(end_s - start_s - needed_s) > self.tolerance_s:
                yield (
                    f"operator {v} runs for {end_s - start_s:.9g} s where processor {p} needs "
                    f"{needed_s:.9g} s"
                )

    def _origin(self, flow: Flow) -> tuple[int, float, str]:
        """Return where and when a flow is made, and what it is called."""
        u = flow.producer
        if u is not None:
            ready_s = self.schedule.end_s[u]
            return self.schedule.processor[u], ready_s, f"the output of operator {u}"
        assert flow.location is not None
        return flow.location, 0.0, f"a tensor located on processor {flow.location}"

    def _reads(self) -> Iterator[tuple[int, Flow, int]]:
        """Yield each flow whose origin is sound, with each of its sound readers."""
        for f, flow in enumerate(self.problem.flows):
            if flow.producer is None or flow.producer in self.well_formed:
                for v in sorted(self.well_formed.intersection(flow.consumers)):
                    yield f, flow, v

    def _arrivals(self) -> Iterator[str]:
        for _, flow, v in self._reads():
            origin, ready_s, source = self._origin(flow)
            p, start_s = self.schedule.processor[v], self.schedule.start_s[v]
            arrival_s = ready_s + flow.transfer_s[origin][p]
            if start_s < arrival_s - self.tolerance_s:
                yield (
                    f"operator {v} starts at {start_s:.9g} s, and {source} arrives on processor "
                    f"{p} at {arrival_s:.9g} s"
                )

    def _needed_transfers(self) -> Iterator[tuple[int, int]]:
        """Yield flow and target of each transfer that has to occupy a resource."""
        if not self.problem.transfer_resource:
            return
        for f, flow, v in self._reads():
            q = self.schedule.processor[v]
            if self.problem.resource_of(self._origin(flow)[0], q) is not None:
                yield f, q

    def _count_transfers(self, needed: set[tuple[int, int]]) -> Iterator[str]:
        counts = Counter((moved.flow, moved.target) for moved in self.schedule.transfers)
        if len(self.well_formed) == self.problem.operators:
            for f, q in sorted(counts.keys() - needed):
                yield f"it moves flow {f} to processor {q}, which is not needed or occupies nothing"
        for f, q in sorted(needed):
            if counts[f, q] != 1:
                yield f"flow {f} must be moved to processor {q} once, and is {counts[f, q]} times"

    def _transfer_times(self, moved: Transfer) -> Iterator[str]:
        flow = self.problem.flows[moved.flow]
        origin, ready_s, _ = self._origin(flow)
        lasts_s, needed_s = moved.end_s - moved.start_s, flow.transfer_s[origin][moved.target]
        if abs(lasts_s - needed_s) > self.tolerance_s:
            yield f"{_name(moved)} takes {lasts_s:.9g} s where it needs {needed_s:.9g} s"
        if moved.start_s < ready_s - self.tolerance_s:
            yield (
                f"{_name(moved)} starts at {moved.start_s:.9g} s, and the tensor is made at "
                f"{ready_s:.9g} s"
            )
        for v in sorted(self.well_formed.intersection(flow.consumers)):
            start_s = self.schedule.start_s[v]
            if self.schedule.processor[v] == moved.target and (
                start_s < moved.end_s - self.tolerance_s
            ):
                yield (
                    f"operator {v} starts at {start_s:.9g} s, and {_name(moved)} ends at "
                    f"{moved.end_s:.9g} s"
                )

    def _overlaps(self, transfers: list[Transfer]) -> Iterator[str]:
        """Compare what is on a resource with what ended last before it, in the order of starts."""
        busy: list[tuple[float, float, int | str, int]] = [
            (self.schedule.start_s[v], self.schedule.end_s[v], v, self.schedule.processor[v])
            for v in sorted(self.well_formed)
        ]
        for moved in transfers:
            origin = self._origin(self.problem.flows[moved.flow])[0]
            resource = self.problem.resource_of(origin, moved.target)
            assert resource is not None
            busy.append((moved.start_s, moved.end_s, _name(moved), resource))
        last: dict[int, tuple[float, int | str]] = {}
        for start_s, end_s, name, resource in sorted(busy, key=lambda each: each[:2]):
            until_s, other = last.get(resource, (start_s, name))
            if start_s < until_s - self.tolerance_s:
                if isinstance(name, int) and isinstance(other, int):
                    yield (
                        f"operator {name} starts at {start_s:.9g} s on processor {resource}, which "
                        f"runs operator {other} until {until_s:.9g} s"
                    )
                else:
                    both = [f"operator {x}" if isinstance(x, int) else x for x in (other, name)]
                    yield f"{' and '.join(both)} are on resource {resource} at the same time"
            if resource not in last or end_s > until_s:
                last[resource] = end_s, name

    def _certificate(self) -> Iterator[str]:
        claim, makespan_s = self.schedule.certificate, self.schedule.makespan_s
        if not (isfinite(claim.objective_s) and isfinite(claim.bound_s) and isfinite(claim.wall_s)):
            yield (
                f"its certificate's objective {claim.objective_s} s, bound {claim.bound_s} s and "
                f"wall time {claim.wall_s} s are not all finite"
            )
            return
        bound_s = claim.bound_s
        if bound_s > claim.objective_s + self.tolerance_s:
            yield f"its bound {bound_s:.9g} s lies above its objective {claim.objective_s:.9g} s"
        timed = len(self.well_formed) == self.problem.operators and claim.proves == "makespan"
        if timed and bound_s > makespan_s + self.tolerance_s:
            yield f"its makespan {makespan_s:.9g} s lies below its bound {bound_s:.9g} s"

    def _energy_claim(self, energy_j: Energies | None) -> Iterator[str]:
        claim = self.schedule.certificate.energy
        if claim is None:
            return
        if energy_j is None or len(self.well_formed) < self.problem.operators:
            yield "nothing is known of the energy that it claims"
            return
        taken_j = energy_of(energy_j, self.schedule.processor)
        tolerance_j = (self.problem.operators + 2) * ulp(max(taken_j, abs(claim.objective_j)))
        if not (isfinite(claim.objective_j) and isfinite(claim.bound_j)):
            yield "the certificate of its energy holds numbers that are not finite"
        elif abs(taken_j - claim.objective_j) > tolerance_j:
            yield f"it takes {taken_j:.9g} J, and {claim.objective_j:.9g} J are claimed"
        elif claim.bound_j > claim.objective_j + tolerance_j:
            yield (
                f"its bound {claim.bound_j:.9g} J lies above its energy {claim.objective_j:.9g} J"
            )


def energy_of(energy_j: Energies, processor: tuple[int, ...]) -> float:
    """Dynamic joules of all operators, each on its processor."""
    return fsum(row[p] for row, p in zip(energy_j, processor, strict=True))


def _name(moved: Transfer) -> str:
    return f"the transfer of flow {moved.flow} to processor {moved.target}"
