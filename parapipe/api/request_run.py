"""Runs requests: sessions of all shapes in one process, states and tokens handed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from parapipe.api.load import locate_model
from parapipe.api.running import write_run_folders
from parapipe.documents.build_request import Request, RequestShape
from parapipe.errors import ExecutionError
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import arrays_in, random_frames
from parapipe.runtime.prompts import MASK, POSITIONS, PromptSteps
from parapipe.runtime.results import write_arrays
from parapipe.runtime.states import next_input
from parapipe.strategies import registry

_FROM_THE_FIRST = ("GroupQueryAttention", "DecoderMaskedMultiHeadAttention")
"""Operators that fill the slots of a cache from the first one on."""


class OpenShape(NamedTuple):
    """Open sessions of a shape."""

    shape: RequestShape
    executor: Executor


@contextmanager
def opened_shapes(
    request: Request,
    model: str | Path | None,
    cores: Mapping[str, Sequence[int]],
    patience_s: float | None,
) -> Iterator[list[OpenShape]]:
    """Open the sessions of all shapes."""
    names = {p.name for each in request.shapes for p in each.plan.processors}
    if unknown := sorted({*cores} - names):
        raise ExecutionError(
            f"cores are given for {listed(unknown)}, and the plans' processors are "
            f"{listed(sorted(names))}"
        )
    clear_abandoned_scratch()
    _, strategy = registry.strategy(registry.PLAN)
    with ExitStack() as stack:
        scratch = stack.enter_context(LockedFolder()).path
        file = stack.enter_context(locate_model(request.answer.plan, model))
        opened = []
        for each in request.shapes:
            place = scratch / each.name
            place.mkdir()
            own = {p.name: cores[p.name] for p in each.plan.processors if p.name in cores}
            folders = write_run_folders(each.plan, file, strategy, place, single=False, cores=own)
            folder = replace(folders.full, first_slots=fills_from_first(each.plan))
            opened.append(OpenShape(each, Executor(folder, patience_s=patience_s)))
        yield opened


def fills_from_first(plan: Plan) -> bool:
    """Tell whether operators fill the slots of caches from the first one on."""
    return any(each.type in _FROM_THE_FIRST for each in plan.operators)


def inputs_of(
    path: Path | None, request: Request, opened: Sequence[OpenShape]
) -> tuple[Any, dict[str, Any]]:
    """Return the prompt, and further inputs that are the same in all steps."""
    folder = opened[-1].executor.folder
    made = {MASK, POSITIONS, request.token_input, *(each.input for each in folder.states)}
    further = {name for each in opened for name in each.executor.folder.inputs} - made
    words = folder.tensors[_logits(request)].shape[-1]
    shape = (*folder.tensors[request.token_input].shape[:-1], request.most_prompt)
    if path is None:
        prompt = np.random.default_rng(0).integers(0, words, shape)
        (random,) = random_frames(folder, 1)
        return prompt, {name: random[name] for name in further}
    arrays = arrays_in(path)
    if {*arrays} != {request.token_input, *further}:
        raise ExecutionError(
            f"{path}: holds {listed(sorted(arrays))}; give {listed([request.token_input])} "
            f"{f'and {listed(sorted(further))}' if further else 'alone'}: masks, positions and "
            "caches are made"
        )
    prompt = arrays.pop(request.token_input)
    fits = prompt.ndim == len(shape) and prompt.shape[:-1] == shape[:-1]
    if not fits or not 0 < prompt.shape[-1] <= shape[-1] or prompt.dtype.kind not in "iu":
        raise ExecutionError(
            f"{path}: '{request.token_input}' is {prompt.dtype} of shape {prompt.shape}; a prompt "
            f"is whole numbers of shape {shape}, or shorter along its last axis"
        )
    return prompt, arrays


def _logits(request: Request) -> str:
    states = request.answer.plan.states or ()
    return next(each.output for each in states if each.input == request.token_input)


def _steps(request: Request, opened: Sequence[OpenShape], prompt: int) -> list[PromptSteps]:
    """Return the steps of each shape; refuse those that a prompt of that length does not fit."""
    begin, found, padding = 0, [], request.most_prompt - prompt
    for shape, executor in opened:
        folder, answers = executor.folder, shape is request.answer
        if folder.first_slots and answers:
            begin = prompt  # padding is behind it, and is written over
        each = PromptSteps(
            shape.name, folder, request.token_input, begin, shape.steps, padding,
            begin + shape.steps if answers else prompt, folder.first_slots,
        )  # fmt: skip
        each.check()
        found.append(each)
        begin += shape.steps * shape.tokens
    last = request.prompt[-1].tokens
    if found[-1].first_slots and padding >= last:
        raise RunError(
            f"the prompt is {padding} tokens shorter than what its steps read, and the last of "
            f"them has {last}: give a longer prompt, or map for this one"
        )
    return found


class RequestRun:
    """Runs requests, one after the other.

    Parameters
    ----------
    opened
        Sessions of its shapes.
    prompt
        Tokens along the last axis.
    others
        Further inputs, the same in all steps.

    Raises
    ------
    RunError
        The prompt does not fit the caches.
    """

    def __init__(
        self,
        request: Request,
        opened: Sequence[OpenShape],
        prompt: Any,  # noqa: ANN401 - arrays
        others: Mapping[str, Any],
    ) -> None:
        self._request, self._opened, self._others = request, opened, others
        self._steps = _steps(request, opened, prompt.shape[-1])
        padding = request.most_prompt - prompt.shape[-1]
        nothing = np.zeros((*prompt.shape[:-1], padding), prompt.dtype)
        behind = self._steps[-1].first_slots
        parts = [prompt, nothing] if behind else [nothing, prompt]
        self._prompt = np.concatenate(parts, axis=-1)
        self._behind = padding if behind else 0
        self._chosen: list[Any] = []
        self._kept: dict[str, list[Mapping[str, Any]]] = {}

    @property
    def slots(self) -> dict[str, int | None]:
        """Of each shape's cache."""
        return {each.name: each.slots for each in self._steps}

    @property
    def tokens(self) -> tuple[tuple[int, ...], ...]:
        """Those of the last request, of each sequence of a batch."""
        every = np.concatenate(self._chosen, axis=-1)
        return tuple(tuple(map(int, row)) for row in every.reshape(-1, every.shape[-1]))

    def once(self, answer: int, *, keep: bool = False) -> list[float]:
        """Run a request; return when each of its tokens was there, in seconds from its begin.

        Parameters
        ----------
        answer
            Steps of one token.
        keep
            Whether to keep what each step makes, states apart.
        """
        self._chosen, self._kept = [], {}
        times_s: list[float] = []
        states: dict[str, Any] = {}
        begin_s = perf_counter()
        for opened, planned in zip(self._opened, self._steps, strict=True):
            answers = opened.shape is self._request.answer
            steps = replace(planned, steps=answer) if answers else planned
            end = steps.begin + steps.steps * steps.tokens
            kept: list[Mapping[str, Any]] = []
            results: Mapping[str, Any] = {}
            frames = self._frames(steps, states, self._chosen[-1] if answers else None)
            with closing(opened.executor.run(frames)) as run:
                for number, results in enumerate(run, 1):
                    read = steps.begin + number * steps.tokens
                    if answers or read == end == self._request.most_prompt:
                        self._chosen.append(self._token(results, 0 if answers else self._behind))
                        times_s.append(perf_counter() - begin_s)
                    if keep:
                        kept.append({n: results[n] for n in results if n not in _outputs(steps)})
            self._kept[steps.name] = kept
            states = {each.input: results[each.output] for each in steps.plan.states
                      if each.kind == "state"}  # fmt: skip
        return times_s

    def _frames(
        self,
        steps: PromptSteps,
        states: Mapping[str, Any],
        token: Any | None,  # noqa: ANN401
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the frames of a shape; the first one has what the shape before has made."""
        tokens = self._prompt[..., steps.begin :] if token is None else token
        tensors = steps.plan.tensors
        first = {
            each.input: next_input(
                each, states[each.input], tensors[each.input], first=steps.first_slots
            )
            if each.input in states
            else np.zeros(tensors[each.input].shape, tensors[each.input].dtype)
            for each in steps.plan.states
            if each.kind == "state"
        }
        for number, frame in enumerate(steps.frames(tokens, self._others)):
            yield frame if number else {**frame, **first}

    def _token(self, results: Mapping[str, Any], behind: int) -> Any:  # noqa: ANN401 - arrays
        """Return the token of largest logit behind the last one that was read, padding apart."""
        logits = results[_logits(self._request)]
        return np.argmax(logits[..., -1 - behind, :], axis=-1)[..., None]

    def write(self, path: Path) -> None:
        """Write the tokens, and what the steps of each shape have made, as SHAPE/NAME."""
        arrays = {"tokens": np.array(self.tokens)}
        for shape, kept in self._kept.items():
            for name in kept[0] if kept else ():
                arrays[f"{shape}/{name}"] = np.stack([each[name] for each in kept])
        write_arrays(path, arrays.items())


def _outputs(steps: PromptSteps) -> set[str]:
    """Return the names of states that a step makes."""
    return {each.output for each in steps.plan.states if each.kind == "state"}
