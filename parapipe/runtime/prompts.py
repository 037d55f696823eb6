"""What the steps of a language model read beside its states: tokens, a mask, positions.

Tokens of a request are numbered from 0. A prompt that is shorter than what its steps read has
padding in front of it. A cache keeps a fixed number of slots, its newest ones last, so a step that
reads the tokens from number a on has those from a - slots on before it; what is padding, or was
never written, is left out by `attention_mask`. Positions count from the first token of the prompt.

Of operators that fill a cache from its first slot on (`GroupQueryAttention`) padding is behind the
prompt, the first slots are filled, and there have to be slots for all tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .document import SessionPlan
from .folder import RunError
from .frames import Frame

MASK, POSITIONS = "attention_mask", "position_ids"


@dataclass(frozen=True)
class PromptSteps:
    """Steps of one shape in a request.

    Parameters
    ----------
    name
        Of the shape.
    token_input
        The graph input that holds the tokens.
    begin
        Number of the first token that they read.
    steps
        How many.
    padding
        Tokens of padding in front of the prompt, or behind it.
    end
        Number of the token behind the last one of the prompt, or that these steps read.
    first_slots
        Whether the cache is filled from its first slot on.
    """

    name: str
    plan: SessionPlan
    token_input: str
    begin: int
    steps: int
    padding: int
    end: int
    first_slots: bool

    @property
    def tokens(self) -> int:
        """Tokens that a step reads."""
        return self.plan.tensors[self.token_input].shape[-1]

    @property
    def slots(self) -> int | None:
        """Slots of the cache before a step; None if neither a mask nor a cache that grows tells."""
        return cache_slots(self.plan, self.tokens)

    def check(self) -> None:
        """Refuse empty slots of a cache that no mask leaves out.

        Raises
        ------
        RunError
            Says how many, and what to do.
        """
        if MASK in self.plan.inputs:
            self._check_room()
            return
        if self.padding:
            raise RunError(
                f"the prompt is {self.padding} tokens shorter than what the steps of a prompt "
                f"read, and the model has no `{MASK}` that leaves padding out: give a prompt of "
                "that length, or map for this one"
            )
        if self.slots is not None and self.slots > self.begin:
            raise RunError(
                f"the cache of '{self.name}' has {self.slots} slots, of which the tokens before "
                f"it fill {self.begin}, and the model has no `{MASK}` that leaves the others out: "
                f"map '{self.name}' for {self.begin}"
            )

    def _check_room(self) -> None:
        """Refuse more tokens than slots, where the oldest ones cannot go."""
        last = self.end - 1  # reads what is before it
        if self.first_slots and self.slots is not None and last > self.slots and self.begin:
            raise RunError(
                f"the cache of '{self.name}' has {self.slots} slots, is filled from the first one "
                f"on, and prompt and answer fill {last}: write fewer tokens, or map '{self.name}' "
                "with more slots"
            )

    def frames(self, tokens: Any, others: Mapping[str, Any]) -> Iterator[Frame]:  # noqa: ANN401
        """Yield what each step reads, its states apart.

        Parameters
        ----------
        tokens
            Along the last axis, those of all steps; of the first step only where later ones read
            what the step before has chosen.
        others
            Further inputs, the same in all steps.
        """
        wanted = self.plan.tensors
        for step in range(self.steps):
            first = self.begin + step * self.tokens
            frame = dict(others)
            mine = tokens[..., step * self.tokens : (step + 1) * self.tokens]
            name = self.token_input
            if mine.shape[-1] < self.tokens:  # it is chosen meanwhile
                mine = np.zeros(wanted[name].shape)
            frame[name] = np.broadcast_to(mine, wanted[name].shape).astype(wanted[name].dtype)
            numbers = np.arange(first + self.tokens) - (0 if self.first_slots else self.padding)
            if POSITIONS in self.plan.inputs:
                at = np.maximum(numbers[first:], 0)
                frame[POSITIONS] = _filled(at, wanted[POSITIONS])
            if MASK in self.plan.inputs:
                frame[MASK] = _filled(self._seen(numbers, wanted[MASK].shape[-1]), wanted[MASK])
            yield frame

    def _seen(self, numbers: Any, slots: int) -> Any:  # noqa: ANN401 - arrays
        """Return a flag for each slot behind a step: whether it holds a token of the request."""
        if self.first_slots:
            return np.arange(slots) < min(len(numbers), self.end)
        return np.concatenate([np.zeros(slots, bool), numbers >= 0])[-slots:]


def cache_slots(plan: SessionPlan, tokens: int) -> int | None:
    """Return the slots of a cache before a step that reads so many tokens; None if nothing tells.

    The mask is as long as the cache after the step; so is what a cache has grown to.
    """
    if MASK in plan.inputs:
        return plan.tensors[MASK].shape[-1] - tokens
    for state in plan.states:
        if state.kind == "state":
            sizes = plan.tensors[state.input].shape, plan.tensors[state.output].shape
            for before, after in zip(*sizes, strict=True):
                if before < after:
                    return before
    return None


def _filled(row: Any, wanted: Any) -> Any:  # noqa: ANN401 - arrays
    return np.broadcast_to(row, wanted.shape).astype(wanted.dtype)
