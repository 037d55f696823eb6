"""What the costs of a mapping depend on: independent causes, and draws of them.

A cause is a standard normal number: the state of a processor, the error of a fit, what a single
operator is off by. Causes have names, and a name always has the same draws: so configurations with
the same costs err together, whatever their cost tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.cost.spread import PlatformSpread
from parapipe.mappings.evaluate import memory_s
from parapipe.mappings.mapping import Mapping, Placement
from parapipe.mappings.power_budget import power_s

Array = NDArray[np.float64]
HAND_OVERS = "hand-overs"
ALL_STATES = "state of all processors"
LEAST_LAUNCH_S = 1e-11  # of a graph: what is less comes from rounding


def state_of(name: str) -> str:
    """Return the cause that is the state of a processor."""
    return f"state of {name}"


def power_of(name: str) -> str:
    """Return the cause that is what a processor's power is off by."""
    return f"power of {name}"


def on_processor(cause: str, processor: str) -> str:
    """Return the cause that is what times with a common source are off by on a processor."""
    return f"{cause} on {processor}"


class Draws:
    """Draws of all causes: a row for each cause, the stated costs first.

    Each cause takes the same values, the middles of equally probable parts of the normal
    distribution, in an order of its own (Latin hypercube sampling; McKay, Beckman and Conover,
    1979).

    Parameters
    ----------
    count
        How many draws, at least one.
    seed
        Of the orders.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.count = count
        self.seed = seed
        normal = NormalDist()
        self._values = np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])
        self._sampled: dict[str, Array] = {}

    def of(self, causes: Sequence[str]) -> Array:
        """Return the causes' values, [cause, draw]; the first column is 0, the stated costs."""
        values = np.zeros((len(causes), 1 + self.count))
        for row, cause in zip(values, causes, strict=True):
            if cause not in self._sampled:
                digest = blake2b(cause.encode(), digest_size=8).digest()
                order = np.random.default_rng([self.seed, int.from_bytes(digest)])
                self._sampled[cause] = order.permutation(self._values)
            row[1:] = self._sampled[cause]
        return values


@dataclass(frozen=True, slots=True)
class SampledCosts:
    """Costs under some draws; the last axis is the draws.

    Parameters
    ----------
    time_s
        By operator.
    moves
        What times of transfers are multiplied by.
    dynamic_j, static_w
        Joules of all operators for a frame, and watts of the used processors.
    arrival_s
        Seconds between frames as they arrive; 0 if the next one is always there.
    memory_s
        Seconds in which the memory serves a frame: no draw takes less.
    power_s
        Seconds between frames that a power budget asks for, likewise.
    """

    time_s: Array
    moves: Array
    dynamic_j: Array
    static_w: Array
    arrival_s: float = 0.0
    memory_s: float = 0.0
    power_s: float = 0.0


@dataclass(frozen=True, slots=True)
class UncertainCosts:
    """The costs of a mapping as a function of causes.

    Parameters
    ----------
    causes
        Names of all causes: first each operator's own, then those that several share.
    time_s, power_w, own, shared
        Of each part of an operator: seconds, dynamic watts, spreads.
    operator, cause
        Of each part: rows of its operator, and of what its time shares with others.
    states, state
        Rows of the processors' states; of each part, which of them counts.
    begins
        First part of each operator.
    powers
        Of each used processor: its index, the row of its power, static watts, and its parts.
    spread
        Of what belongs to the platform.
    arrival_s, memory_s, power_s
        As of `SampledCosts`.
    launches_s
        Of each operator: seconds to start the captured graph that begins with it, which are taken
        as they are stated. None if no processor captures graphs.
    """

    causes: tuple[str, ...]
    time_s: Array
    power_w: Array
    own: Array
    shared: Array
    operator: NDArray[np.intp]
    cause: NDArray[np.intp]
    states: NDArray[np.intp]
    state: NDArray[np.intp]
    begins: NDArray[np.intp]
    powers: tuple[tuple[int, int, float, NDArray[np.intp]], ...]
    spread: PlatformSpread
    arrival_s: float
    memory_s: float
    power_s: float
    launches_s: Array | None = None

    def costs(self, values: Array) -> SampledCosts:
        """Return the costs for some values of the causes, [cause, draw]."""
        logarithm = self.own[:, None] * values[self.operator]
        logarithm += self.shared[:, None] * values[self.cause]
        time_s = self.time_s[:, None] * np.exp(logarithm)
        dynamic_j, static_w = np.zeros((2, values.shape[1]))
        for p, row, watts, parts in self.powers:
            factor = np.exp(self.spread.power[p] * values[row])
            dynamic_j += factor * (self.power_w[parts] @ time_s[parts])
            static_w += factor * watts
        all_states = self.spread.common * values[self.causes.index(ALL_STATES)]
        states = np.exp(self.spread.own_state * values[self.states] + all_states)
        time_s *= states[self.state]  # in a state in which it is slower, it draws less power
        operators_s = np.add.reduceat(time_s, self.begins, axis=0)
        if self.launches_s is not None:
            operators_s += self.launches_s[:, None]
        return SampledCosts(
            operators_s,
            np.exp(self.spread.transfers * values[self.causes.index(HAND_OVERS)]),
            dynamic_j,
            static_w,
            self.arrival_s,
            self.memory_s,
            self.power_s,
        )


def uncertain_costs(mapping: Mapping, costs: CostTable, names: Sequence[str]) -> UncertainCosts:
    """Return what the costs of a mapping depend on.

    Parameters
    ----------
    names
        Of each operator; operators of the same name err together on the same processor.
    """
    names_of = costs.processors
    spread = costs.spread or PlatformSpread(0.0, (0.0,) * len(names_of), 0.0, names_of)
    placed = [mapping.at[v] for v in range(len(mapping.placements))]
    rows: dict[str, int] = {}

    def row(cause: str) -> int:
        return rows.setdefault(cause, len(rows))

    own = [row(on_processor(names[at.operator], costs.processors[at.processor])) for at in placed]
    numbers: list[tuple[float, ...]] = []
    indices: list[tuple[int, ...]] = []
    begins: list[int] = []
    for at, mine in zip(placed, own, strict=True):
        cost, p = costs.cost(at.operator, at.processor), at.processor
        assert cost is not None, "it was mapped there"
        begins.append(len(numbers))
        state = row(state_of(spread.states[p]))
        for part in cost.parts:
            of = part.spread
            shared = row(on_processor(of.cause, costs.processors[p])) if of.cause else mine
            numbers.append((part.time_s, part.power.value, of.own, of.shared))
            indices.append((mine, shared, state, p))
    time_s, power_w, own_spread, shared_spread = np.array(numbers).T
    operator, cause, state_rows, processor = np.array(indices, np.intp).T
    powers = tuple(
        (
            p,
            row(power_of(spread.states[p])),
            costs.static_power_w[p],
            np.flatnonzero(processor == p),
        )
        for p in mapping.processors
    )
    row(HAND_OVERS)
    row(ALL_STATES)
    states, which = np.unique(state_rows, return_inverse=True)
    return UncertainCosts(
        causes=tuple(rows),
        time_s=time_s,
        power_w=power_w,
        own=own_spread,
        shared=shared_spread,
        operator=operator,
        cause=cause,
        states=states,
        state=which,
        begins=np.array(begins, np.intp),
        powers=powers,
        spread=spread,
        arrival_s=costs.arrival_s,
        memory_s=memory_s(mapping, costs),
        power_s=power_s(mapping, costs),
        launches_s=_launches_s(placed, costs) if costs.graph_launch_s else None,
    )


def _launches_s(placed: Sequence[Placement], costs: CostTable) -> Array:
    """Return the seconds of each operator beyond its own time: it starts a captured graph."""
    own_s = (at.end_s - at.start_s - costs.time_s(at.operator, at.processor) for at in placed)
    return np.array([launch_s if launch_s > LEAST_LAUNCH_S else 0.0 for launch_s in own_s])
