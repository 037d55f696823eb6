"""A Pareto front that `map` returns, its configurations and their plans."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from pydantic import PrivateAttr

from parapipe.cost.cost_table import CostTable
from parapipe.cost.operating_points import Setting
from parapipe.documents.doubt import DRAWS, draws_text
from parapipe.documents.front_folder import FRONT, PLANS, SOLVE_LOG, FrontFolder, front_csv
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.documents.shapes_schema import SCHEMA, SHAPES_FILE
from parapipe.files.atomic import check_folder, write_folder
from parapipe.files.progress import Progress, worker_count
from parapipe.front.configurations import Configurations, PlannedConfiguration
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.configuration import Configuration
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Plan
from parapipe.platform.platform import Platform
from parapipe.processes.shared_work import shared_work
from parapipe.search.exploration_result import Exploration
from parapipe.search.option_types import MaxMemory
from parapipe.uncertainty.samples import SampledFront


class MappedConfiguration(PlannedConfiguration):
    """A configuration that was just mapped: its plan is made when it is asked for."""

    _configuration: Configuration = PrivateAttr()
    _graph: OperatorGraph = PrivateAttr()
    _at: Setting = PrivateAttr()
    _max_memory_bytes: MaxMemory | None = PrivateAttr()
    _arena_effort_s: float = PrivateAttr()

    def __init__(
        self,
        row: ConfigurationRow,
        front: FrontDocument,
        configuration: Configuration,
        graph: OperatorGraph,
        at: Setting,
        *,
        max_memory_bytes: MaxMemory | None,
        arena_effort_s: float,
    ) -> None:
        super().__init__(row, front)
        self._configuration = configuration
        self._graph = graph
        self._at = at
        self._max_memory_bytes = max_memory_bytes
        self._arena_effort_s = arena_effort_s

    @property
    def configuration(self) -> Configuration:
        """The mapping itself, by indices of operators and processors."""
        return self._configuration

    @property
    def graph(self) -> OperatorGraph:
        """The model."""
        return self._graph

    @property
    def platform(self) -> Platform:
        """Where it was mapped, at its operating points."""
        return self._at.platform

    @property
    def costs(self) -> CostTable:
        """What operators and transfers cost, at its operating points."""
        return self._at.costs

    def plan(self, like: Plan | None = None) -> Plan:
        """Write it down for a runtime; the plan has passed its verifier.

        Parameters
        ----------
        like
            The plan of another configuration of the same model, if one is at hand: takes less time.
        """
        configuration = self._configuration
        return build_plan(
            self._graph,
            self._at.platform,
            self._at.costs,
            configuration.mapping,
            found=configuration.evaluated,
            like=like,
            arena_bytes=self._arena_bytes(),
            arena_effort_s=self._arena_effort_s,
        )

    def _arena_bytes(self) -> dict[str, float]:
        """Return by memory how large its arena may be under the limit that the search kept.

        Of what a limit of all memories together leaves, each gets a share by its tensors.
        """
        limit, memories = self._max_memory_bytes, self.memories
        if limit is None:
            return {}
        constant = {each.name: each.constant_bytes for each in memories}
        if isinstance(limit, Mapping):
            return {name: limit[name] - size for name, size in constant.items() if name in limit}
        tensors = {each.name: each.peak_bytes - each.constant_bytes for each in memories}
        left = limit - sum(constant.values())
        share = max(1.0, left / (sum(tensors.values()) or 1))
        return {name: share * size_bytes for name, size_bytes in tensors.items()}


@dataclass(slots=True)
class PlanWriter:
    """Makes plans of configurations of one model; what all have in common is made once."""

    _like: Plan | None = None
    _shared: dict[str, str] = field(default_factory=dict)

    def plan(self, configuration: MappedConfiguration) -> Plan:
        """Return a configuration's plan."""
        if configuration.split:  # its model is another one
            return configuration.plan()
        self._like = configuration.plan(self._like)
        return self._like

    def text(self, configuration: MappedConfiguration) -> bytes:
        """Return a configuration's plan as its file holds it."""
        plan = self.plan(configuration)
        if configuration.split:
            return plan.to_bytes()
        self._shared = self._shared or plan.texts("tensors", "operators")
        return plan.to_bytes(self._shared)


def plan_texts(configurations: Iterable[MappedConfiguration]) -> Iterator[bytes]:
    """Yield the plans of configurations as their files hold them."""
    writer = PlanWriter()
    return (writer.text(each) for each in configurations)


def texts_by_id(
    configurations: Sequence[MappedConfiguration], jobs: int
) -> Iterator[tuple[str, bytes]]:
    """Yield ids and plans in any order, each when it is there.

    Parameters
    ----------
    jobs
        Processes at most, this one included.
    """
    for number, text in shared_work(plan_texts, configurations, jobs):
        yield configurations[number].id, text


FILES = (FRONT, "front.csv", SOLVE_LOG)
Mapped = TypeVar("Mapped", bound=MappedConfiguration)
PLAN_NAME = re.compile(r"c\d+\.json")


@dataclass(frozen=True, slots=True, repr=False)
class ParetoFront(Configurations[Mapped]):
    """The configurations that no other one beats, and those with a name of their own.

    Parameters
    ----------
    document
        What front.json holds.
    configurations
        By ascending latency, as in the document.
    exploration
        The schedules they were chosen from.
    partition
        The subgraphs and units that the schedules are for.
    drawn
        What the configurations take in draws of the costs, if there are any.
    workers
        Processes that the search's memory limit has room for; one per core if None.
    """

    document: FrontDocument
    configurations: tuple[Mapped, ...]
    exploration: Exploration
    partition: Partition
    drawn: SampledFront | None = None
    workers: int | None = None

    def __repr__(self) -> str:
        """Return a line: the whole front would be megabytes."""
        front = self.document
        return f"<ParetoFront of {front.model} on {front.platform}: {len(self)} configurations>"

    def solve_log(self) -> list[dict[str, Any]]:
        """Return how the mapping problems were solved and where they belong, as solve_log.json."""
        from parapipe.documents.solve_log import solve_log

        return solve_log(self.configurations[0].graph, self.partition, self.exploration)

    def write(
        self,
        directory: str | Path,
        *,
        progress: Callable[[Progress], None] | None = None,
        jobs: int | None = None,
    ) -> tuple[Path, ...]:
        """Write front.json, front.csv, solve_log.json, draws.json and plans/<id>.json.

        Parameters
        ----------
        progress
            Called after each plan that is made.
        jobs
            Processes that make plans, where that takes long; `workers` if not given.

        Raises
        ------
        OutputError
            The folder or a file cannot be written; no file is left half-written.
        """
        directory = Path(directory)
        began_s, total = perf_counter(), len(self)
        content = (
            (json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n").encode(),
            front_csv(self.document.configurations).encode(),
            _entries_json(self.solve_log()),
        )
        files = dict(zip(map(Path, FILES), content, strict=True))
        if self.drawn:
            ids = [row.id for row in self.document.configurations]
            files[Path(DRAWS)] = draws_text(ids, self.drawn)
        places = [Path(PLANS) / f"{each.id}.json" for each in self.configurations]

        def plans() -> Iterator[tuple[Path, bytes]]:
            texts = texts_by_id(self.configurations, worker_count(jobs or self.workers))
            for done, (name, text) in enumerate(texts, 1):
                yield Path(PLANS) / f"{name}.json", text
                if progress is not None:
                    elapsed_s = perf_counter() - began_s
                    progress(Progress(done, total, 0.0, elapsed_s, phase="writing"))

        write_folder(directory, files, plans(), places)
        joint = directory / SHAPES_FILE  # an earlier front of several shapes would be read first
        if joint.is_file() and SCHEMA.encode() in joint.read_bytes():
            joint.unlink()
        if not self.drawn:
            (directory / DRAWS).unlink(missing_ok=True)  # of an earlier run
        written = {each.name for each in places}
        for old in (directory / PLANS).glob("c*.json"):
            if PLAN_NAME.fullmatch(old.name) and old.name not in written:
                old.unlink()  # of an earlier run: it belongs to no configuration of this front
        return tuple(directory / name for name in (*files, *places))

    def content(self) -> FrontFolder:
        """Return the document with the plan of each configuration, the solve log and the draws."""
        writer = PlanWriter()
        plans = {each.id: writer.plan(each) for each in self.configurations}
        return FrontFolder(self.document, plans, self.solve_log(), self.drawn)


def check_directory(directory: Path) -> None:
    """Try whether a front could be written to a folder; leave everything as it was.

    Raises
    ------
    OutputError
        It could not.
    """
    check_folder(directory, [*map(Path, (*FILES, DRAWS)), Path(PLANS) / "c01.json"])


def _entries_json(entries: Sequence[Any]) -> bytes:
    """Return a list as JSON, a line for each entry."""
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    return f"[\n{lines}\n]\n".encode()
