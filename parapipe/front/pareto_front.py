"""A Pareto front to look at, to ask and to write down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from parapipe.documents.doubt import DRAWS, draws_text
from parapipe.documents.front import FrontDocument
from parapipe.documents.front_folder import FRONT, PLANS, SOLVE_LOG, FrontFolder, front_csv
from parapipe.files.atomic import check_folder, write_folder
from parapipe.files.progress import Progress, worker_count
from parapipe.front.configurations import Configurations
from parapipe.front.mapped_configuration import MappedConfiguration, Plans, written_plans
from parapipe.graph.partition import Partition
from parapipe.search.exploration_result import Exploration
from parapipe.uncertainty.samples import DrawnFront

FILES = (FRONT, "front.csv", SOLVE_LOG)
Made = TypeVar("Made", bound=MappedConfiguration)
PLAN_NAME = re.compile(r"c\d+\.json")


@dataclass(frozen=True, slots=True, repr=False)
class ParetoFront(Configurations[Made]):
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
    """

    document: FrontDocument
    configurations: tuple[Made, ...]
    exploration: Exploration
    partition: Partition
    drawn: DrawnFront | None = None

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
            Processes that make plans, where that takes long; one per core of this machine if not
            given.

        Raises
        ------
        OutputError
            The folder or a file cannot be written; no file is left half-written.
        """
        directory = Path(directory)
        began_s, total = perf_counter(), len(self)
        content = (
            _json(self.to_json()),
            front_csv(self.document.configurations).encode(),
            _lines(self.solve_log()),
        )
        files = dict(zip(map(Path, FILES), content, strict=True))
        if self.drawn:
            ids = [row.id for row in self.document.configurations]
            files[Path(DRAWS)] = draws_text(ids, self.drawn)
        made = written_plans(self.configurations, worker_count(jobs))
        plans: dict[str, bytes] = {}
        for name, text in made:
            plans[name] = text
            if progress is not None:
                elapsed_s = perf_counter() - began_s
                progress(Progress(len(plans), total, 0.0, elapsed_s, phase="writing"))
        for each in self.configurations:
            files[Path(PLANS) / f"{each.id}.json"] = plans[each.id]
        write_folder(directory, files)
        if not self.drawn:
            (directory / DRAWS).unlink(missing_ok=True)  # of an earlier run
        for old in (directory / PLANS).glob("c*.json"):
            if PLAN_NAME.fullmatch(old.name) and old.relative_to(directory) not in files:
                old.unlink()  # of an earlier run: it belongs to no configuration of this front
        return tuple(directory / name for name in files)

    def content(self) -> FrontFolder:
        """Return the document with the plan of each configuration, the solve log and the draws."""
        made = Plans()
        plans = {each.id: made.plan(each) for each in self.configurations}
        return FrontFolder(self.document, plans, self.solve_log(), self.drawn)


def check_directory(directory: Path) -> None:
    """Try whether a front could be written to a folder; leave everything as it was.

    Raises
    ------
    OutputError
        It could not.
    """
    check_folder(directory, [*map(Path, (*FILES, DRAWS)), Path(PLANS) / "c01.json"])


def _lines(entries: Sequence[Any]) -> bytes:
    """Return a list as JSON, a line for each entry."""
    told = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    return f"[\n{told}\n]\n".encode()


def _json(document: Any) -> bytes:  # noqa: ANN401 - any JSON document
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
