"""The cost table: operators on processors, tensors between them, and where times come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf

from parapipe.cost.co_run import CoRunLaw, co_run_law
from parapipe.cost.coverage import CoverageRow, coverage_of
from parapipe.cost.precision import move_times_s, working_types
from parapipe.cost.price import OperatorCost, PartCost
from parapipe.cost.pricing import Pricing, View, outer_type
from parapipe.cost.profile import Profile, shipped_profiles
from parapipe.cost.spread import PlatformSpread, platform_spread
from parapipe.errors import CostError
from parapipe.files.mistakes import did_you_mean, listed, listed_sentences
from parapipe.graph.operator_graph import OperatorGraph, size_in_bytes
from parapipe.graph.states import longest_loop_path
from parapipe.platform.memories import MemorySystem
from parapipe.platform.platform import Platform
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor
from parapipe.platform.segments import SegmentRules
from parapipe.platform.support import Refusal

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
        By tensor's name: seconds from processor p to q, a cast included where they keep it in
        different types; 0 on the diagonal.
    input_times_s, output_times_s
        By processor: seconds to load all graph inputs and to read all graph outputs.
    static_power_w
        By processor: watts of one that is used, busy or not.
    idle_power_w
        Watts of the board with no processor used.
    transfer_resource
        What a transfer from p to q occupies, as of `Platform.transfer_resource`; empty if never
        anything.
    precision
        What the model is planned in.
    working
        By processor: the type that it keeps converted tensors in, None for the model's own.
    memory_system
        Where tensors lie; None for a single memory.
    segment_rules
        What segments cost; None if nothing is known of that.
    makes
        By processor: what it is beside its costs, equal where one may do another's work.
    spread
        What the platform's own numbers may be off by; None if that is not known.
    excluded
        Names of the platform's processors that are left out.
    arrival_s
        Seconds between frames as they arrive; 0 if the next one is always there.
    bandwidth_bytes_per_s
        What the memory gives all processors together; None if no limit is known.
    power_budget_w
        Watts that the processors may draw on average; None if they may draw any.
    co_run
        How much processors slow each other down; None if the platform states no such law.
    wholes
        By processor: what that law calls it, as the whole that it is a part or a stream of.
    graph_launch_s
        By processor: seconds to start a captured graph, None of one that captures none; empty if
        none does. Its operators' times hold no launch then: see `parapipe.mappings.launches`.
    loop
        Operators, each reading from the one before, that a state passes through in a step.
    sequences
        How many sequences with states of their own take turns.
    """

    processors: tuple[str, ...]
    entries: tuple[tuple[OperatorCost | Refusal, ...], ...]
    transfers: Mapping[str, Matrix]
    input_times_s: tuple[float, ...]
    output_times_s: tuple[float, ...]
    static_power_w: tuple[float, ...]
    idle_power_w: float
    transfer_resource: tuple[tuple[int | None, ...], ...] = ()
    precision: Precision = "model"
    working: tuple[str | None, ...] = ()
    memory_system: MemorySystem | None = None
    segment_rules: SegmentRules | None = None
    makes: tuple[object, ...] = ()
    spread: PlatformSpread | None = None
    excluded: tuple[str, ...] = ()
    arrival_s: float = 0.0
    bandwidth_bytes_per_s: float | None = None
    power_budget_w: float | None = None
    co_run: CoRunLaw | None = None
    wholes: tuple[str, ...] = ()
    graph_launch_s: tuple[float | None, ...] = ()
    loop: tuple[int, ...] = ()
    sequences: int = 1

    def frame_s(self, period_s: float) -> float:
        """Return the seconds for which static power counts in a frame's energy.

        Parameters
        ----------
        period_s
            Least seconds between frames.
        """
        return max(period_s, self.arrival_s)

    def memory_s(self, v: int, p: int) -> float:
        """Return the seconds in which the memory, doing nothing else, serves operator v on p.

        That is the bytes that it reads and writes over the bandwidth; at most its own time, since
        what it moves beyond that in that time has come out of caches. 0 if no limit of the
        bandwidth is known; else infinite if p does not run it.
        """
        if self.bandwidth_bytes_per_s is None:
            return 0.0
        entry = self.entries[v][p]
        if isinstance(entry, Refusal):
            return inf
        return min(entry.moved_bytes / self.bandwidth_bytes_per_s, entry.time_s)

    def memory_ranges_s(self) -> list[tuple[float, float]]:
        """Return the least and the most of `memory_s` of each operator, wherever it runs."""
        rows = (
            [time_s for p in range(len(row)) if (time_s := self.memory_s(v, p)) < inf] or [0.0]
            for v, row in enumerate(self.entries)
        )
        return [(min(row), max(row)) for row in rows]

    def memory_range_s(self) -> tuple[float, float]:
        """Return what the memory needs for a frame at least and at most, wherever operators run.

        Both are 0 if no limit of the bandwidth is known.
        """
        if self.bandwidth_bytes_per_s is None:
            return 0.0, 0.0
        least_s, most_s = zip(*self.memory_ranges_s(), strict=True)
        return fsum(least_s), fsum(most_s)

    @property
    def least_period_s(self) -> float:
        """Seconds between frames that no mapping is below, for its bytes and its states' loops."""
        loop_s = fsum(self._fastest_s(v) for v in self.loop)
        return max(self.memory_range_s()[0], loop_s / self.sequences)

    @property
    def least_frame_s(self) -> float:
        """Seconds that static power counts for in a frame's energy at least."""
        return self.frame_s(self.least_period_s)

    def _fastest_s(self, v: int) -> float:
        return min(self.time_s(v, p) for p in range(len(self.processors)))

    def time_s(self, v: int, p: int) -> float:
        """Return the seconds of operator v on processor p; infinite if p does not run it."""
        entry = self.entries[v][p]
        return inf if isinstance(entry, Refusal) else entry.time_s

    def energy_j(self, v: int, p: int) -> float:
        """Return the dynamic joules of operator v on processor p; infinite if p does not run it."""
        entry = self.entries[v][p]
        return inf if isinstance(entry, Refusal) else entry.energy_j

    def cost(self, v: int, p: int) -> OperatorCost | None:
        """Return the cost of operator v on processor p with its sources, if p runs it."""
        entry = self.entries[v][p]
        return None if isinstance(entry, Refusal) else entry

    def unsupported(self, v: int, p: int) -> Refusal | None:
        """Return why processor p does not run operator v, or None if it does."""
        entry = self.entries[v][p]
        return entry if isinstance(entry, Refusal) else None

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

    def coverage(self) -> CoverageRow:
        """Return how much of the table was measured, stated, fitted and is nominal."""
        return coverage_of({name: self.parts(p) for p, name in enumerate(self.processors)})


def build_cost_table(
    graph: OperatorGraph,
    platform: Platform,
    *,
    profiles: Sequence[Profile] | None = None,
    view: View = "deployed",
    precision: Precision | None = None,
    measured: bool = True,
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
    precision
        What the model is planned in; that of the platform if not given.
    measured
        Whether measurements of an operator itself count, or only what is fitted to others as well.

    Raises
    ------
    CostError
        If no processor supports an operator, or there is no number for one on a processor that
        does (all such operators are named), a rules file names processors that the platform does
        not have, or a profile was measured at other clocks and the platform does not say how times
        follow the clock.
    """
    if graph.source.members:
        platform = platform.without_captured_graphs()  # frames of models come one by one
    every = shipped_profiles(platform.profile_name) if profiles is None else profiles
    profiles = tuple(each.in_state(platform.state) for each in every)
    _check_clocks(platform, profiles)
    _check_rules(graph, platform)
    precision = precision or platform.precision
    working = working_types(platform, precision)
    pricing = Pricing(graph, platform, profiles, view, precision, measured=measured)
    entries = tuple(pricing.row(v) for v in range(len(graph.operators)))
    pricing.check()
    graph_launches_s = tuple(p.launch.graph_s for p in platform.processors)
    return CostTable(
        processors=tuple(p.name for p in platform.processors),
        entries=entries,
        transfers=_transfer_matrices(graph, platform, working),
        input_times_s=tuple(
            p.input_time(outer_bytes(graph, graph.loaded, p, precision)).value
            for p in platform.processors
        ),
        output_times_s=tuple(
            p.output_time(outer_bytes(graph, graph.results, p, precision)).value
            for p in platform.processors
        ),
        static_power_w=tuple(p.static_power_w for p in platform.processors),
        idle_power_w=platform.idle_power_w,
        transfer_resource=platform.transfer_resource,
        precision=precision,
        working=working,
        memory_system=platform.memory_system,
        segment_rules=platform.segment_rules,
        makes=tuple(
            (p.kind, p.backend, p.options, len(p.cores), p.point, p.segments, p.launch.graph_s)
            for p in platform.processors
        ),
        spread=platform_spread(platform),
        excluded=tuple(each.name for each in platform.excluded),
        bandwidth_bytes_per_s=platform.bandwidth_limit_bytes_per_s,
        power_budget_w=platform.sustained_power_w,
        co_run=(law := co_run_law(platform)),
        wholes=tuple(platform.names[platform.whole(p)] for p in range(len(platform.processors)))
        if law
        else (),
        graph_launch_s=graph_launches_s if any(s is not None for s in graph_launches_s) else (),
        loop=longest_loop_path(graph, [min(_times_s(row)) for row in entries]),
        sequences=graph.sequences,
    )


def _times_s(row: Sequence[OperatorCost | Refusal]) -> Iterator[float]:
    yield from (inf if isinstance(entry, Refusal) else entry.time_s for entry in row)


def _transfer_matrices(
    graph: OperatorGraph, platform: Platform, working: Sequence[str | None]
) -> dict[str, Matrix]:
    by_size_and_type = {(each.size_bytes, each.dtype): each for each in graph.tensors.values()}
    matrices = {
        key: move_times_s(each, platform, working) for key, each in by_size_and_type.items()
    }
    return {name: matrices[each.size_bytes, each.dtype] for name, each in graph.tensors.items()}


def outer_bytes(
    graph: OperatorGraph, names: Iterable[str], processor: Processor, precision: Precision
) -> int:
    """Return the bytes of graph inputs or outputs as a processor takes or gives them.

    They are of the model's type, or where it does not compute in that, of its own.
    """
    return sum(
        size_in_bytes(tensor.shape, outer_type(tensor, processor, precision)) or 0
        for tensor in map(graph.tensors.__getitem__, names)
    )


def _check_clocks(platform: Platform, profiles: Sequence[Profile]) -> None:
    """Raise if a profile was measured at other clocks, of which the platform says nothing."""
    clocks = {p.name: p.point.frequency_hz for p in platform.processors if not p.clock.scaling}
    wrong = sorted(
        f"profile '{profile.name}' was measured with '{processor}' at "
        f"{listed([f'{hz / 1e6:g}' for hz in sorted(clocks_hz)])} MHz, "
        f"not at {clocks[processor] / 1e6:g} MHz"
        for profile in profiles
        for processor, clocks_hz in profile.clocks_hz.items()
        if processor in clocks and not min(clocks_hz) <= clocks[processor] <= max(clocks_hz)
    )
    if wrong:
        raise CostError(
            f"{listed_sentences(wrong)}; set the default_frequency_hz of platform "
            f"'{platform.name}' to what was measured, state clock.scaling there, or give another "
            "profile"
        )


def _check_rules(graph: OperatorGraph, platform: Platform) -> None:
    """Raise if rules name processors that the platform does not have."""
    known = {*platform.names, *(each.name for each in platform.excluded)}
    wrong = {
        (single.work.rule, name)
        for operator in graph.operators
        for single in operator.singles
        for name in single.work.runs_on
        if name not in known
    }
    if wrong:
        files = " and ".join(sorted({f"'{file}'" for file, _ in wrong}))
        names = sorted({name for _, name in wrong})
        raise CostError(
            f"rules in {files} name processors that platform '{platform.name}' does not have: "
            f"{listed(names)}; it has {', '.join(platform.names)}"
            f"{did_you_mean(names[0], platform.names)}"
        )
