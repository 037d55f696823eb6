"""The platform: processors, the links between them, and where each number comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from parapipe.files.mistakes import KeyPath, Mistake
from parapipe.files.yaml_file import Strict, WholeFile
from parapipe.platform.co_run import CoRun, PowerBudget, co_run_contradictions
from parapipe.platform.consistency import OCCUPIED, contradictions
from parapipe.platform.fields import (
    Deviation,
    Expression,
    Many,
    Name,
    Prose,
    Provenance,
    Seconds,
    Section,
    Share,
    Text,
    Travel,
    Watts,
    file_value,
    travel_time,
)
from parapipe.platform.memories import MemorySystem, SharedMemory
from parapipe.platform.precision import Precision
from parapipe.platform.processor import Processor
from parapipe.platform.sections import BlockRuns, SharedBandwidth
from parapipe.platform.segments import SegmentRules
from parapipe.platform.thermal_state import State


class Source(Strict):
    """Where numbers come from.

    Parameters
    ----------
    provenance
        `measured` on this hardware, `stated` by its maker without saying whether it was measured or
        simulated, `fitted` to such numbers, or `nominal`: from a data sheet, another board or by
        reasoning.
    title
        What it is, in one line.
    repository, commit, paths, url
        Where it can be found.
    reasoning
        How the numbers follow from it.
    """

    provenance: Provenance
    title: Text
    repository: Text | None = None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None = None
    paths: Many[Text] = ()
    url: Text | None = None
    reasoning: Text | None = None


class Board(Section):
    """The board around the processors: its idle power, P_non of Para-Pipe."""

    idle_power_w: Watts


class Synchronisation(Section):
    """What a hand-over between two processors costs besides moving the tensor.

    Parameters
    ----------
    overhead_s
        Seconds to wake the waiting thread, drain the queue and the like: once for each tensor and
        each processor that receives it, whatever the size.
    """

    overhead_s: Seconds


class Link(Section, Travel):
    """Time to move a tensor from one processor to another.

    Parameters
    ----------
    sender, receiver
        Names of the processors (`from` and `to` in the file).
    conversion
        Time that the pair needs on top to change the tensor's form.
    synchronisation
        Overhead of each hand-over on top; left out, the latency includes it.
    occupies
        What a transfer keeps busy for as long as it takes: `nothing` (a pure delay, as in equation
        (4) of Para-Pipe), the `sender`, the `receiver`, or a shared link by a name of its own; all
        links that give that name take turns.
    both_ways
        Whether the link is also that from receiver to sender.
    """

    short_keys = ("between",)

    sender: Name = Field(alias="from")
    receiver: Name = Field(alias="to")
    conversion: Travel | None = None
    synchronisation: Synchronisation | None = None
    occupies: Name = "nothing"
    both_ways: bool = False

    @property
    def overhead_s(self) -> float:
        """Seconds of synchronisation for each hand-over; 0 where the latency includes it."""
        return 0.0 if self.synchronisation is None else self.synchronisation.overhead_s

    def time(self, size_bytes: float) -> Expression:
        """Return the seconds for that many bytes, conversion and synchronisation included."""
        time = travel_time(self, size_bytes)
        if self.conversion is not None:
            time += travel_time(self, size_bytes, "conversion")
        if self.synchronisation is not None:
            time += file_value("synchronisation", "s", self, "synchronisation", "overhead_s")
        return time


class Evaluation(Section):
    """What the final evaluation of a mapping knows beyond the separable costs.

    Parameters
    ----------
    hand_over_share
        Share of a hand-over between blocks that were measured apart which their times do not hold
        already; hand-overs inside a block, and of models that were not measured, count in full.
    contention
        Lengthening of an operator, as a share of its time, while others together move as many bytes
        as the shared memory can: a law of co-runs, of a platform without `co_run`; 0: none is
        known.
    """

    hand_over_share: Share = 1.0
    contention: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0


class Spread(Section):
    """How far times on this machine are off from one moment to another.

    Standard deviations of the natural logarithm of times, so that 0.05 is about 5 %.

    Parameters
    ----------
    state
        Of all times on a processor together, between two moments: its heat, its clock, what else
        the machine does.
    common
        Of all times on all processors together; `state` contains it.
    hand_overs
        Of all hand-overs together, between what the links say and what they take.
    """

    state: Deviation
    common: Deviation = 0.0
    hand_overs: Deviation | None = None


class Platform(WholeFile):
    """A system-on-chip on its board.

    Parameters
    ----------
    format
        `schema` in the file: the version of the format.
    processors
        In the order in which everything else counts them.
    evaluation
        What `evaluate` corrects; nothing if left out.
    co_run
        How processors slow each other down; not at all if left out.
    state
        In which models are planned where nobody says: `cold`, at the default clocks, or
        `sustained`, at those that stay in long runs.
    power_budget
        What the processors may draw for ever; not known if left out.
    block_runs
        What runs with an operating point for each block take; not known if left out.
    spread
        How far times are off; that of another board if left out.
    links
        Every ordered pair of different processors is covered exactly once.
    memories
        Every processor stands in one of them; not known if left out.
    precision
        In which models are planned where nobody says; as they stand if left out.
    profile
        Name of the folder of measured profiles to use; the platform's own name if left out.
    sources
        By the ids that the sections' `source` name.
    """

    short_keys = ("chip", "base")

    format: Literal["parapipe/platform/1"] = Field(alias="schema")
    name: Name
    description: Prose = ""
    profile: Name | None = None
    precision: Precision = "model"
    board: Board
    memory: SharedBandwidth
    memories: Annotated[Many[SharedMemory], Field(max_length=32)] = ()
    processors: Annotated[Many[Processor], Field(min_length=1, max_length=32)]
    evaluation: Evaluation | None = None
    co_run: CoRun | None = None
    state: State = "cold"
    power_budget: PowerBudget | None = None
    block_runs: BlockRuns | None = None
    spread: Spread | None = None
    links: Annotated[Many[Link], Field(max_length=992)] = ()
    sources: dict[Name, Source]
    _excluded: tuple[Processor, ...] = PrivateAttr(())
    _with_controllers: Platform | None = PrivateAttr(None)

    @classmethod
    def contradictions(cls, raw: object) -> Iterable[Mistake]:
        """Find what parts of a platform file say against each other, and names that are unknown."""
        return chain(contradictions(raw), co_run_contradictions(raw))

    @property
    def contention(self) -> float:
        """Lengthening of an operator per byte a second that others move; 0 if none is known."""
        evaluation = self.evaluation
        return evaluation.contention / self.memory.bandwidth_bytes_per_s if evaluation else 0.0

    @property
    def bandwidth_limit_bytes_per_s(self) -> float | None:
        """The most that all processors together move; None if no such limit is known."""
        return None if self.memory.lower_bound else self.memory.bandwidth_bytes_per_s

    @property
    def sustained_power_w(self) -> float | None:
        """Watts that the processors may draw on average; None where any, as on a cold chip."""
        budget = self.power_budget
        return budget.sustained_w if budget and self.state == "sustained" else None

    def without_co_runs(self) -> Platform:
        """Return the platform as if processors did not slow each other down."""
        evaluation = self.evaluation and self.evaluation.model_copy(update={"contention": 0.0})
        return self.model_copy(update={"co_run": None, "evaluation": evaluation})

    def without_captured_graphs(self) -> Platform:
        """Return the platform as if every operator was started by itself."""
        processors = tuple(each.launching_each() for each in self.processors)
        return self.model_copy(update={"processors": processors})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the processors, in order."""
        return tuple(processor.name for processor in self.processors)

    @property
    def excluded(self) -> tuple[Processor, ...]:
        """Processors of the file that are left out here."""
        return self._excluded

    @property
    def with_controllers(self) -> Platform:
        """The platform with those excluded CPUs too that control a processor of it.

        What a compiler leaves to the CPU runs there, be it left out or not.
        """
        return self._with_controllers or self

    def index(self, name: str) -> int:
        """Return the index of the processor of that name.

        Raises
        ------
        KeyError
            If there is none.
        """
        if name not in self.names:
            raise KeyError(name)
        return self.names.index(name)

    def whole(self, p: int) -> int:
        """Return the index of what processor p is a part of; p if it is a processor of its own."""
        whole = self.processors[p].whole
        return p if whole is None else self.index(whole.name)

    def link_path(self, p: int, q: int) -> KeyPath:
        """Return where the file states the link from one processor to another one."""
        pair = self.whole(p), self.whole(q)
        if pair[0] == pair[1]:
            key = "streams" if self.processors[pair[0]].streams else "divisions"
            return "processors", pair[0], key, "hand_over"
        return "links", self.links.index(self.link_of[pair])

    def at(self, frequencies_hz: Sequence[float]) -> Platform:
        """Return the same platform with each processor at one of its operating points.

        Raises
        ------
        KeyError
            If a processor has no point of that frequency.
        """
        processors = (p.at(hz) for p, hz in zip(self.processors, frequencies_hz, strict=True))
        return self.model_copy(update={"processors": tuple(processors)})

    @property
    def idle_power_w(self) -> float:
        """Watts of the idle board, P_non of Para-Pipe."""
        return self.board.idle_power_w

    @property
    def nominal_power(self) -> tuple[str, ...]:
        """Names of the processors of which no power was measured, nor fitted to what was."""
        return tuple(
            p.name for p in self.processors if self.sources[p.power.source].provenance == "nominal"
        )

    @property
    def profile_name(self) -> str:
        """Name of the folder of measured profiles."""
        return self.profile or self.name

    @cached_property
    def link_of(self) -> Mapping[tuple[int, int], Link]:
        """The link of every ordered pair of different processors, by their indices."""
        links: dict[tuple[int, int], Link] = {}
        for link in self.links:
            pair = (self.index(link.sender), self.index(link.receiver))
            links[pair] = link
            if link.both_ways:
                links[pair[::-1]] = link
        return links

    @cached_property
    def memory_system(self) -> MemorySystem:
        """The memories; where the file states none, one is assumed that all processors share.

        The parts of a divided cluster keep their tensors where the cluster does, as streams do.
        """
        memories, links = self.memories, self.link_of.items()
        copying = frozenset(
            (self.names[p], self.names[q]) for (p, q), link in links if link.conversion
        )
        stored = {p.name: p.weights for p in self.processors if p.weights}
        packing = {
            p: each.packing for p, each in stored.items() if each.own_copy or each.packing != 1
        }
        rules = self.segment_rules
        own_bytes = {name: rules.memory_bytes(p) for p, name in enumerate(self.names)}
        segment_bytes = {name: size_bytes for name, size_bytes in own_bytes.items() if size_bytes}
        if not memories:
            return MemorySystem.assumed_for(self.names, copying, packing, segment_bytes)
        place = {name: m for m, each in enumerate(memories) for name in each.processors}
        wholes = (self.names[self.whole(p)] for p in range(len(self.processors)))
        return MemorySystem(
            names=tuple(each.name for each in memories),
            assumed=False,
            memory_of={name: place[of] for name, of in zip(self.names, wholes, strict=True)},
            alignment_bytes=tuple(each.alignment_bytes for each in memories),
            usable_bytes=tuple(each.usable_bytes for each in memories),
            copying=copying,
            packing=packing,
            segment_bytes=segment_bytes,
        )

    @cached_property
    def segment_rules(self) -> SegmentRules:
        """What its processors say of segments."""
        return SegmentRules.of(self.processors)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Names of what can be busy: the processors, then shared links as the file names them."""
        links = (link.occupies for link in self.links if link.occupies not in OCCUPIED)
        return (*self.names, *dict.fromkeys(links))

    @cached_property
    def transfer_resource(self) -> tuple[tuple[int | None, ...], ...]:
        """Index into `resources` of what a transfer from p to q occupies, by p and q.

        None where it is a pure delay; empty if all are.
        """
        everyone = range(len(self.names))
        rows = tuple(tuple(self._occupied_index(p, q) for q in everyone) for p in everyone)
        return rows if any(r is not None for row in rows for r in row) else ()

    def _occupied_index(self, p: int, q: int) -> int | None:
        occupied = "nothing" if p == q else self.link_of[p, q].occupies
        ends = {"nothing": None, "sender": p, "receiver": q}
        return ends[occupied] if occupied in ends else self.resources.index(occupied)

    def transfer_s(self, size_bytes: float, p: int, q: int) -> float:
        """Return the seconds to move a tensor of that size from processor p to q; 0 if p is q."""
        return 0.0 if p == q else self.link_of[p, q].time(size_bytes).value
