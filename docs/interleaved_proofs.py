"""Whether interleaved frames can be better than stages at a bounded latency: proofs for fronts.md.

Asked is for any mapping of whole operators whose latency and period are at most given ones, stages
or not. That there is none is proven by the load of the busiest processor, which bounds the period;
by prices of the loads, which bound the latency of the longest path at a period (`latency_floors`);
or by CP-SAT over assignments, orders, lags and the period, for networks of up to `MOST_OPERATORS`
operators and in `EFFORT_S` of its deterministic time. It may find such a mapping, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from parapipe import load_model, load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.exact_latency import least_latency_by_cp_sat
from parapipe.modulo.latency_curve import LatencyFloors, least_period_of
from parapipe.modulo.least_period import LeastPeriod
from parapipe.modulo.verify import check
from parapipe.problems.problems import whole_problem
from parapipe.solvers.problem import NANO, MappingProblem

MOST_OPERATORS = 100  # of larger networks, the programme alone takes minutes
EFFORT_S = 10.0  # of CP-SAT's deterministic time, half a minute of a core

By = Literal["loads", "prices", "CP-SAT"]


@dataclass(frozen=True, slots=True)
class Question:
    """The most latency and period that are asked for, in seconds."""

    latency_s: float
    period_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether there is none, and by what that is proven; or one that was found.

    Parameters
    ----------
    none
        There is none: proven.
    found_s
        The period of one that was found; None if neither was.
    by
        What proved or found it; None if nothing did.
    """

    none: bool
    found_s: float | None = None
    by: By | None = None

    @property
    def words(self) -> str:
        """What a cell says."""
        if self.found_s is not None:
            return f"→ {1 / self.found_s:.4g} (CP-SAT)"
        return "proven: none" if self.none else "none found"


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers for a model on a platform, kept in a file."""

    path: Path
    model: str
    platform: str

    def of(self, questions: Sequence[Question], *, search: bool) -> list[Answer | None]:
        """Return the answer to each question; of those that are not kept, None unless searched."""
        known = self._kept()
        for question in questions if search else ():
            if question not in known:
                known[question] = _answered(self.model, self.platform, question)
                self._keep(known)
        return [known.get(question) for question in questions]

    def _kept(self) -> dict[Question, Answer]:
        if not self.path.exists():
            return {}
        rows = json.loads(self.path.read_text(encoding="utf-8"))
        return {Question(**row["question"]): Answer(**row["answer"]) for row in rows}

    def _keep(self, known: dict[Question, Answer]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"question": asdict(each), "answer": asdict(known[each])} for each in known]
        self.path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


@cache
def _problem(model: str, platform: str) -> tuple[MappingProblem, LeastPeriod]:
    graph = load_model(f"zoo:{model}")
    problem = whole_problem(graph, build_cost_table(graph, load_platform(platform)))
    return problem, least_period_of(problem, seed=0)


def _answered(model: str, platform: str, question: Question) -> Answer:
    problem, least = _problem(model, platform)
    if least.bound_s > question.period_s:
        return Answer(none=True, by="loads")
    shares = (0.9, 0.95, 1.0)
    near_s = [least.period_s * (question.period_s / least.period_s) ** share for share in shares]
    if LatencyFloors(problem, near_s).at(question.period_s) > question.latency_s:
        return Answer(none=True, by="prices")
    if problem.operators > MOST_OPERATORS:
        return Answer(none=False)
    found = least_latency_by_cp_sat(
        CyclicProblem(problem),
        int(question.period_s * NANO),
        shortest=int(least.bound_s * NANO),
        latency=int(question.latency_s * NANO),
        most=EFFORT_S,
    )
    if found.schedule is not None:
        check(problem, found.schedule)
        return Answer(none=False, found_s=found.schedule.period / NANO, by="CP-SAT")
    return Answer(none=found.proven, by="CP-SAT" if found.proven else None)
