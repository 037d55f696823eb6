"""Requests of several shapes: what is predicted of one, and its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from statistics import median
from typing import Literal

from parapipe.documents.request_schema import (
    SCHEMA,
    ComparedRow,
    RequestDocument,
    RequestShapeRow,
)
from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument
from parapipe.errors import PlanError
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan

LEAST_TOKENS = 2


@dataclass(frozen=True, slots=True)
class RequestShape:
    """A shape with steps in a request.

    Parameters
    ----------
    tokens
        That each step reads.
    """

    name: str
    plan: Plan
    steps: int
    tokens: int

    @property
    def steps_s(self) -> float:
        """Seconds from the begin of the first step to the end of the last one."""
        predicted = self.plan.predicted
        return predicted.latency_s + (self.steps - 1) * predicted.period_s


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and the tokens after it, by the placements of a row of shapes.json.

    Parameters
    ----------
    prompt
        Shapes that read the prompt, in order.
    answer
        The shape that reads one token in each step.
    token_input
        The graph input that holds tokens.
    """

    document: ShapesDocument
    row: CombinationRow
    prompt: tuple[RequestShape, ...]
    answer: RequestShape
    token_input: str

    @classmethod
    def of(
        cls,
        document: ShapesDocument,
        row: CombinationRow,
        plans: Mapping[str, Plan],
        tokens: int | None,
    ) -> Request:
        """Return a request with the steps of the mix, and so many tokens to write if that is said.

        Raises
        ------
        PlanError
            The shapes are buckets, or are not a prompt's and then a token's.
        """
        if document.bucket is not None:
            raise PlanError(
                f"the shapes are buckets of '{document.bucket}', and a request has one of them: "
                f"name its folder, as in {document.shapes[0].name}"
            )
        steps = {each.name: each.steps for each in document.shapes if each.steps}
        states = plans[[*steps][-1]].states or ()
        token_input = next((each.input for each in states if each.kind == "token"), None)
        shapes = [
            RequestShape(name, plans[name], count, _tokens_read(plans[name], token_input))
            for name, count in steps.items()
        ]
        last = shapes[-1]
        if len(shapes) < 2 or token_input is None or not all(each.tokens for each in shapes):
            raise PlanError(
                "a request has a prompt, and then steps of one token, which is fed back as the "
                f"input `input_ids` beside a cache; the shapes with steps are {listed([*steps])}: "
                "run the folder of each by itself, or map others"
            )
        if any((each.plan.sequences or 1) > 1 for each in shapes):
            raise PlanError("a request is of one sequence, and these plans have several in turns")
        if tokens is not None and tokens < LEAST_TOKENS:
            raise PlanError(f"give {LEAST_TOKENS} tokens or more: the first is the prompt's own")
        count = last.steps if tokens is None else tokens - 1
        answer = RequestShape(last.name, last.plan, count, last.tokens)
        return cls(document, row, tuple(shapes[:-1]), answer, token_input)

    @property
    def shapes(self) -> tuple[RequestShape, ...]:
        """All shapes, in order."""
        return (*self.prompt, self.answer)

    @property
    def most_prompt(self) -> int:
        """Tokens that the steps of the prompt read."""
        return sum(each.steps * each.tokens for each in self.prompt)

    @property
    def tokens(self) -> int:
        """Tokens that are written."""
        return self.answer.steps + 1

    def moved_s(self, end: str) -> float:
        """Seconds in which states move before the steps of a shape."""
        return sum(each.time_s for each in self.row.moves if each.end == end)

    @property
    def first_token_s(self) -> float:
        """Seconds from the begin to the first token, as predicted."""
        first, last = self.prompt[0].plan.predicted, self.prompt[-1].plan.predicted
        steps_s = sum(each.steps_s + self.moved_s(each.name) for each in self.prompt)
        return first.input_s + steps_s + last.output_s

    @property
    def sequences(self) -> int:
        """Sequences of a batch."""
        return prod(self.answer.plan.tensors[self.token_input].shape[:-1])

    @property
    def energy_per_token_j(self) -> float | None:
        """Joules of each token after the first one, as predicted; None if shapes.json is older.

        What the mix counts once, such as moves, is shared by the tokens that are written here.
        """
        if self.row.energy_per_token_j is None:
            return None
        mixed = next(each.steps for each in self.document.shapes if each.name == self.answer.name)
        step_j = self.answer.plan.predicted.energy_j
        once_j = mixed * (self.row.energy_per_token_j * self.sequences - step_j)
        return (step_j + once_j / self.answer.steps) / self.sequences

    @property
    def answer_s(self) -> float:
        """Seconds from the first token to the last one, as predicted."""
        return self.moved_s(self.answer.name) + self.answer.steps_s


def _tokens_read(plan: Plan, token_input: str | None) -> int:
    """Return how many tokens of a text a step of a plan reads; 0 if it reads none."""
    read = plan.tensors.get(token_input or "") if token_input in plan.inputs else None
    return read.shape[-1] if read is not None and read.shape else 0


def request_document(
    request: Request,
    times_s: Sequence[Sequence[float]],
    *,
    how: Literal["run", "simulation"],
    prompt: int,
    slots: Mapping[str, int | None],
    chosen: tuple[tuple[int, ...], ...] | None = None,
) -> RequestDocument:
    """Return the document of requests.

    Parameters
    ----------
    times_s
        Of each request, when each of its tokens was there, in seconds from its begin.
    prompt
        Tokens that a request begins with.
    slots
        Of each shape's cache.
    """
    count = request.answer.steps
    token_s = request.answer_s / count

    def compared(predicted: float, observed: float) -> ComparedRow:
        return ComparedRow(predicted=predicted, observed=observed, error=predicted / observed - 1)

    observed_token_s = median((some[-1] - some[0]) / count for some in times_s)
    gaps_s = [b - a for some in times_s for a, b in pairwise(some)]
    document, row = request.document, request.row
    return RequestDocument(
        schema=SCHEMA,
        how=how,
        model=document.model,
        platform=document.platform,
        configuration=row.id,
        shapes=tuple(
            RequestShapeRow(
                name=each.name,
                id=row.placements[each.name].id,
                drawing=row.placements[each.name].drawing,
                steps=each.steps,
                tokens=each.tokens,
                slots=slots.get(each.name),
            )
            for each in request.shapes
        ),
        requests=len(times_s),
        prompt=prompt,
        tokens=request.tokens,
        first_token_s=compared(request.first_token_s, median(some[0] for some in times_s)),
        token_s=compared(token_s, observed_token_s),
        tokens_per_second=compared(1 / token_s, 1 / observed_token_s),
        request_s=compared(
            request.first_token_s + request.answer_s, median(some[-1] for some in times_s)
        ),
        median_token_s=median(gaps_s),
        moved_s=sum(each.time_s for each in row.moves),
        energy_per_token_j=request.energy_per_token_j,
        chosen=chosen,
    )
