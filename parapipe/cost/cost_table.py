"""The cost table: every operator on every processor, every tensor between any two."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from parapipe.cost.coverage import Coverage, coverage_of
from parapipe.cost.price import (
    MeasuredSource,
    OperatorCost,
    PartCost,
    Subject,
    price,
    price_fused,
    subject_of,
)
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.errors import CostError
from parapipe.files.listing import listed, listed_sentences
from parapipe.files.mistake import did_you_mean
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor

View = Literal["deployed", "as-measured"]
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class CostTable:
    """What a graph's operators and tensors cost on a platform, by index of operator and processor.

    Parameters
    ----------
    processors
        Names, in the platform's order.
    entries
        `entries[v][p]`: cost of operator v on processor p, or the reason why p does not run v.
    transfers
        By tensor's name: seconds from processor p to q, 0 on the diagonal.
    input_times_s, output_times_s
        By processor: seconds to load all graph inputs and to read all graph outputs.
    static_power_w
        By processor: watts of one that is used, busy or not.
    idle_power_w
        Watts of the board with no processor used.
    transfer_resource
        What a transfer from p to q occupies, as of `Platform.transfer_resource`; empty if never
        anything.
    """

    processors: tuple[str, ...]
    entries: tuple[tuple[OperatorCost | str, ...], ...]
    transfers: Mapping[str, Matrix]
    input_times_s: tuple[float, ...]
    output_times_s: tuple[float, ...]
    static_power_w: tuple[float, ...]
    idle_power_w: float
    transfer_resource: tuple[tuple[int | None, ...], ...] = ()

    def time_s(self, v: int, p: int) -> float:
        """Return the seconds of operator v on processor p; infinite if p does not run it."""
        entry = self.entries[v][p]
        return inf if isinstance(entry, str) else entry.time_s

    def energy_j(self, v: int, p: int) -> float:
        """Return the dynamic joules of operator v on processor p; infinite if p does not run it."""
        entry = self.entries[v][p]
        return inf if isinstance(entry, str) else entry.energy_j

    def cost(self, v: int, p: int) -> OperatorCost | None:
        """Return the cost of operator v on processor p with its sources, if p runs it."""
        entry = self.entries[v][p]
        return None if isinstance(entry, str) else entry

    def unsupported(self, v: int, p: int) -> str | None:
        """Return the reason why processor p does not run operator v, or None if it does."""
        entry = self.entries[v][p]
        return entry if isinstance(entry, str) else None

    def transfer_s(self, tensor: str, p: int, q: int) -> float:
        """Return the seconds to move the tensor from processor p to q; 0 if they are the same."""
        return self.transfers[tensor][p][q]

    def transfer_matrix(self, tensor: str) -> Matrix:
        """Return the seconds to move the tensor from each processor to each other."""
        return self.transfers[tensor]

    def input_s(self, p: int) -> float:
        """Return the seconds to load all graph inputs for processor p."""
        return self.input_times_s[p]

    def output_s(self, p: int) -> float:
        """Return the seconds to read all graph outputs from processor p."""
        return self.output_times_s[p]

    def parts(self, p: int) -> Iterator[PartCost]:
        """Yield what each single operator costs on processor p."""
        for row in self.entries:
            if isinstance(cost := row[p], OperatorCost):
                yield from cost.parts

    def coverage(self) -> Coverage:
        """Return how much of the table was measured, fitted and is nominal."""
        return coverage_of({name: self.parts(p) for p, name in enumerate(self.processors)})


def build_cost_table(
    graph: OperatorGraph,
    platform: Platform,
    *,
    profiles: Sequence[Profile] | None = None,
    view: View = "deployed",
) -> CostTable:
    """Return what the graph costs on the platform, its processors at their operating points.

    Parameters
    ----------
    profiles
        Measurements, the first that has a signature counting. Default: those shipped under the
        platform's `profile_name`.
    view
        `deployed`: operators folded into the constants of others (batch-norm, a scale) are free.
        `as-measured`: they cost what they cost by themselves, as on boards that ran them so.

    Raises
    ------
    CostError
        If no processor supports an operator, or there is no number for one on a processor that
        does (all such operators are named), a rules file names processors that the platform does
        not have, or a profile was measured at other clocks and the platform does not say how times
        follow the clock.
    """
    profiles = shipped_profiles(platform.profile_name) if profiles is None else tuple(profiles)
    _check_clocks(platform, profiles)
    _check_rules(graph, platform)
    pricing = _Pricing(graph, platform, profiles, view)
    entries = tuple(pricing.row(operator) for operator in graph.operators)
    pricing.check()
    count = range(len(platform.processors))
    by_size = {
        size: tuple(tuple(platform.transfer_s(size, p, q) for q in count) for p in count)
        for size in {tensor.size_bytes for tensor in graph.tensors.values()}
    }
    loaded = sum(graph.tensors[name].size_bytes for name in graph.inputs)
    read = sum(graph.tensors[name].size_bytes for name in graph.outputs)
    return CostTable(
        processors=tuple(p.name for p in platform.processors),
        entries=entries,
        transfers={name: by_size[tensor.size_bytes] for name, tensor in graph.tensors.items()},
        input_times_s=tuple(p.input_time(loaded).value for p in platform.processors),
        output_times_s=tuple(p.output_time(read).value for p in platform.processors),
        static_power_w=tuple(p.static_power_w for p in platform.processors),
        idle_power_w=platform.idle_power_w,
        transfer_resource=platform.transfer_resource,
    )


def _check_clocks(platform: Platform, profiles: Sequence[Profile]) -> None:
    """Raise if a profile was measured at other clocks, of which the platform says nothing."""
    clocks = {p.name: p.point.frequency_hz for p in platform.processors if not p.clock.scaling}
    wrong = sorted(
        f"profile '{profile.name}' was measured with '{processor}' at "
        f"{listed([f'{hz / 1e6:g}' for hz in sorted(found)])} MHz, "
        f"not at {clocks[processor] / 1e6:g} MHz"
        for profile in profiles
        for processor, found in profile.clocks_hz.items()
        if processor in clocks and not min(found) <= clocks[processor] <= max(found)
    )
    if wrong:
        raise CostError(
            f"{listed_sentences(wrong)}; set the default_frequency_hz of platform "
            f"'{platform.name}' to what was measured, state clock.scaling there, or give another "
            "profile"
        )


def _check_rules(graph: OperatorGraph, platform: Platform) -> None:
    """Raise if rules name processors that the platform does not have."""
    wrong = {
        (single.work.rule, name)
        for operator in graph.operators
        for single in operator.singles
        for name in single.work.runs_on
        if name not in platform.names
    }
    if wrong:
        files = " and ".join(sorted({f"'{file}'" for file, _ in wrong}))
        names = sorted({name for _, name in wrong})
        raise CostError(
            f"rules in {files} name processors that platform '{platform.name}' does not have: "
            f"{listed(names)}; it has {', '.join(platform.names)}"
            f"{did_you_mean(names[0], platform.names)}"
        )


def folded_into(operator: Operator) -> tuple[Operator, ...]:
    """Return the operators that are folded into the constants of this one or of its parts."""
    holders = (operator, *operator.parts)
    return tuple({part.id: part for holder in holders for part in holder.folded}.values())


class _Pricing:
    """Prices a graph's operators and collects those that have no price."""

    def __init__(
        self, graph: OperatorGraph, platform: Platform, profiles: tuple[Profile, ...], view: View
    ) -> None:
        self.graph = graph
        self.platform = platform
        clocks_hz = {p.name: p.clock.default_frequency_hz for p in platform.processors}
        self.sources = tuple(MeasuredSource(profile, clocks_hz) for profile in profiles)
        self.view = view
        self.missing: dict[tuple[str, str], list[str]] = {}
        self.nowhere: dict[tuple[str, str], list[str]] = {}

    def row(self, operator: Operator) -> tuple[OperatorCost | str, ...]:
        """Return the operator's cost, or why there is none, for each processor."""
        parts = [subject_of(part, self.graph) for part in operator.singles]
        folded = folded_into(operator) if self.view == "as-measured" else ()
        extra = [subject_of(part, self.graph) for part in folded]
        row: list[OperatorCost | str] = []
        for processor in self.platform.processors:
            reason = _unsupported(parts, processor, self.graph.tensors)
            row.append(reason or self._cost(parts, extra, processor) or "it has no price")
        if all(isinstance(entry, str) for entry in row):
            reasons = ", ".join(dict.fromkeys(str(entry) for entry in row))
            self.nowhere.setdefault((operator.type, reasons), []).append(f"'{operator.name}'")
        return tuple(row)

    def check(self) -> None:
        """Raise if an operator has no price, or no processor."""
        name = self.platform.name
        if self.missing:
            raise CostError(
                f"there is no time of {_by_type(self.missing)}; state these numbers in platform "
                f"'{name}' or give a profile with such operators"
            )
        if self.nowhere:
            raise CostError(
                f"no processor of platform '{name}' supports {_by_type(self.nowhere)}; choose "
                "another platform, allow these types in its file, or change the model"
            )

    def _cost(
        self, parts: Sequence[Subject], extra: Sequence[Subject], processor: Processor
    ) -> OperatorCost | None:
        """Return the cost of parts that were measured at one go, or else of each by itself."""
        if not extra and (whole := price_fused(parts, processor, self.sources)):
            return OperatorCost((whole,))
        found: list[PartCost] = []
        for subject in (*parts, *extra):
            try:
                found.append(price(subject, processor, self.platform.name, self.sources))
            except CostError as error:
                operator = subject.operator
                names = self.missing.setdefault((operator.type, str(error)), [])
                names.append(f"'{operator.name}'")
        return OperatorCost(tuple(found)) if len(found) == len(parts) + len(extra) else None


def _by_type(groups: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Say of each type and reason how many operators there are, and name the first."""
    distinct = {key: list(dict.fromkeys(names)) for key, names in groups.items()}
    return "; ".join(
        f"{len(names)} {kind} ({listed(names)}: {reasons})"
        for (kind, reasons), names in distinct.items()
    )


def _unsupported(
    parts: Sequence[Subject], processor: Processor, tensors: Container[str]
) -> str | None:
    for part in parts:
        operator, dtype = part.operator, part.signature.dtype
        activations = {i for i, name in enumerate(operator.inputs) if name in tensors}
        reason = processor.supports(operator.type, dtype, operator.attributes, activations)
        if reason and processor.name not in operator.work.runs_on:
            return reason
    return None
