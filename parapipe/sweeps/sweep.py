"""Many models on many platforms, each with some options, and questions to all their fronts."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from parapipe.api.checked import Folder, Note, checked
from parapipe.api.front import StoredFront, load_front
from parapipe.api.load import ZOO
from parapipe.api.pick import Pick, pick
from parapipe.documents.figure_table import DemandKeywords, Demands, Minimise
from parapipe.errors import DemandError, SweepError
from parapipe.files.atomic import atomic_folder, write_folder
from parapipe.files.checked_arguments import Must, NotEmpty
from parapipe.files.locked_folders import clear_abandoned_scratch
from parapipe.files.progress import ALONE, Progress, Tell
from parapipe.files.shipped import path_exists
from parapipe.front.demands import figure
from parapipe.search.option_types import FilePath
from parapipe.search.options import MapKeywords, MapOptions
from parapipe.sweeps.document import (
    DEFAULT,
    DOCUMENT,
    RESULTS,
    SCHEMA,
    SweepDocument,
    SweepRow,
    figures_of,
    load_sweep_document,
    load_sweep_file,
    sweep_frame,
    sweep_page,
)
from parapipe.sweeps.tasks import (
    Answers,
    SweepAnswer,
    SweepTask,
    dask_answers,
    local_answers,
    with_digests,
)
from parapipe.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class SweepPick:
    """What is picked from one front of a sweep.

    Parameters
    ----------
    missed
        Which demands no configuration of the front meets, and by how much; empty if one does.
    """

    row: SweepRow
    picked: Pick | None
    missed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "result": self.row.to_json(),
            "picked": self.picked.to_json() if self.picked else None,
            "missed": self.missed or None,
        }


class StoredSweep:
    """A sweep that `sweep` wrote to a folder.

    Parameters
    ----------
    folder
        Where its files are.
    document
        What its sweep.json holds.
    """

    def __init__(self, folder: Path, document: SweepDocument) -> None:
        self.folder = folder
        self.document = document

    def __repr__(self) -> str:
        """Return a line."""
        return f"<StoredSweep in {self.folder}: {len(self.document.results)} results>"

    def __len__(self) -> int:
        return len(self.document.results)

    def __iter__(self) -> Iterator[tuple[SweepRow, StoredFront]]:
        """Yield the results that have a front."""
        for row in self.document.results:
            if row.error is None:
                yield row, self[row.name]

    def __getitem__(self, name: str) -> StoredFront:
        """Return the front of a result by its name."""
        return load_front(self.folder / RESULTS / name)

    def to_json(self) -> dict[str, Any]:
        """Return the document of sweep.json as plain data."""
        return self.document.to_json()

    def to_pandas(self) -> DataFrame:
        """Return one row per configuration of all fronts, units in the column names."""
        return sweep_frame((row, front.document) for row, front in self)

    def pick(
        self, minimise: Minimise = "latency", **demands: Unpack[DemandKeywords]
    ) -> tuple[SweepPick, ...]:
        """Pick a configuration of each front, as `pick` does.

        Returns
        -------
        Model by model; for each, those that meet all demands come first, the best of them first.
        """
        picks = [_pick_from(row, front, minimise, demands) for row, front in self]
        models = list(dict.fromkeys(each.row.model for each in picks))

        def rank(each: SweepPick) -> tuple[int, float]:
            """Return the place of the model, and what is to be least: infinite without a pick."""
            row = each.picked.configuration if each.picked else None
            least = figure(row, minimise, Demands(**demands)) if row else inf
            return models.index(each.row.model), least

        return tuple(sorted(picks, key=rank))


def _pick_from(
    row: SweepRow, front: StoredFront, minimise: Minimise, demands: DemandKeywords
) -> SweepPick:
    try:
        return SweepPick(row, pick(front, minimise, **demands))
    except DemandError as error:
        return SweepPick(row, None, str(error))


@checked
def load_sweep(directory: Folder) -> StoredSweep:
    """Read the sweep that `sweep` wrote to a folder.

    Raises
    ------
    SweepError
        Its sweep.json cannot be read.
    """
    folder = Path(directory)
    return StoredSweep(folder, load_sweep_document(folder))


def is_sweep(directory: Path) -> bool:
    """Tell whether a folder is one of a sweep."""
    return (directory / DOCUMENT).is_file()


TASK = "task.json"
Names = Annotated[Sequence[NotEmpty | Path], Must("a list of paths and names")]


@checked
def sweep(
    file: FilePath | None = None,
    *,
    out: Folder,
    models: Names = (),
    platforms: Names = (),
    scheduler: NotEmpty | None = None,
    progress: Tell | None = None,
    note: Note | None = None,
    **keywords: Unpack[MapKeywords],
) -> StoredSweep:
    """Map each of several models on each of several platforms; write all fronts and a table.

    What an earlier sweep has written to the folder, of the same inputs with the same options, is
    not done again.

    Parameters
    ----------
    file
        YAML file that names models, platforms and options.
    out
        Folder for the results.
    models
        Paths of ONNX files or zoo:NAME, in place of a file.
    platforms
        Names of shipped platforms or paths of YAML files, in place of a file.
    scheduler
        Address of a Dask scheduler, as in tcp://10.0.0.5:8786, whose workers do the work. They need
        this version of parapipe, and see the files under the same paths. Default: processes of this
        machine.
    progress
        Called after each front.
    note
        Takes what does no harm but should be known, a sentence each; a warning if not given.
    keywords
        Fields of `MapOptions`; those of the file come before them. `jobs` is the number of
        processes, each of which maps one model at a time.

    Raises
    ------
    SweepError
        The file is wrong, two results would have one name, or the work cannot be handed out.
    """
    base = MapOptions(**keywords)
    tasks = with_digests(_tasks_of(file, models, platforms, base))
    folder = Path(out)
    note = note or warnings.warn
    clear_abandoned_scratch()
    left = [task for task in tasks if not _is_done(folder, task)]
    answers = _answers(left, scheduler, base.jobs)
    earlier, total, began_s = len(tasks) - len(left), len(tasks), perf_counter()
    errors: dict[str, str] = {}
    for done, (task, answer) in enumerate(answers, start=earlier + 1):
        for sentence in answer.notes:
            note(f"{task.name}: {sentence}")
        if answer.error:
            errors[task.name] = answer.error
        else:
            _write_front(folder, task, answer)
        if progress is not None:
            elapsed_s = perf_counter() - began_s
            progress(Progress(done, total, 0.0, elapsed_s, cached=earlier, phase="sweeping"))
    _write_tables(folder, tasks, errors, note)
    return load_sweep(folder)


def _tasks_of(
    file: str | Path | None, models: Names, platforms: Names, base: MapOptions
) -> list[SweepTask]:
    """Return all tasks in order, without digests."""
    variants: Mapping[str, Mapping[str, Any]] = {DEFAULT: {}}
    if file is None:
        if not (models and platforms):
            raise SweepError("a sweep needs a file, or `models` and `platforms`")
    elif models or platforms:
        raise SweepError("give either a file, or `models` and `platforms`")
    else:
        read, beside = load_sweep_file(Path(file)), Path(file).parent
        models = [_resolved(beside, each) for each in read.models]
        platforms = [_resolved(beside, each) for each in read.platforms]
        variants = read.options
    tasks = [
        SweepTask(
            _task_name(model, platform, "" if variant == DEFAULT else variant),
            model, platform, variant, replace(base, jobs=ALONE, **changes),
        )
        for model in (os.fspath(each) for each in models)
        for platform in (os.fspath(each) for each in platforms)
        for variant, changes in variants.items()
    ]  # fmt: skip
    twice = [name for name, count in Counter(task.name for task in tasks).items() if count > 1]
    if twice:
        raise SweepError(
            f"several results would be called {', '.join(twice)}: name each model, platform and "
            "option once, and rename files of equal names"
        )
    return tasks


def _resolved(folder: Path, name: str) -> str:
    """Return a path in a sweep file as seen from here; names stay as they are."""
    path = folder / name
    return str(path) if not name.startswith(ZOO) and path_exists(path) else name


def _task_name(model: str, platform: str, variant: str) -> str:
    words = [Path(model.removeprefix(ZOO)).stem, Path(platform).stem, variant]
    return "-".join(filter(None, words)).replace(":", "-")


def _write_front(folder: Path, task: SweepTask, answer: SweepAnswer) -> None:
    """Write a front to its folder, whole or not at all."""
    with atomic_folder(folder / RESULTS / task.name) as place:
        for path, content in answer.unpacked():
            (place / path).parent.mkdir(exist_ok=True)
            (place / path).write_bytes(content)
        (place / TASK).write_bytes(_task_record(task))


def _answers(tasks: Sequence[SweepTask], scheduler: str | None, jobs: int | None) -> Answers:
    answers = dask_answers(tasks, scheduler) if scheduler else local_answers(tasks, jobs)
    for task, answer in answers:
        if answer.version != __version__:
            raise SweepError(
                f"a worker of the scheduler has parapipe {answer.version}, and here is "
                f"{__version__}: install the same version on all machines"
            )
        yield task, answer


def _task_record(task: SweepTask) -> bytes:
    record = {"schema": "parapipe/sweep-task/1", "sha256": task.digest}
    return (json.dumps(record) + "\n").encode()


def _is_done(folder: Path, task: SweepTask) -> bool:
    try:
        return (folder / RESULTS / task.name / TASK).read_bytes() == _task_record(task)
    except OSError:
        return False


def _write_tables(
    folder: Path, tasks: Sequence[SweepTask], errors: Mapping[str, str], note: Note
) -> None:
    """Write sweep.json, and the table and the page over all fronts."""
    rows = []
    fronts = []
    for task in tasks:
        said: dict[str, Any] = {"error": errors.get(task.name)}
        front = None
        if not said["error"]:
            front = load_front(folder / RESULTS / task.name).document
            said = figures_of(front)
        row = SweepRow(
            name=task.name, model=task.model, platform=task.platform, options=task.variant, **said
        )
        rows.append(row)
        if front:
            fronts.append((row, front))
    document = SweepDocument(
        schema=SCHEMA,
        parapipe=__version__,
        options={task.variant: _changed_options(task.options) for task in tasks},
        results=tuple(rows),
    )
    table = sweep_frame(fronts)
    files = {
        DOCUMENT: document.to_bytes(),
        "sweep.csv": table.to_csv(index=False, lineterminator="\n").encode(),
        "index.html": sweep_page(document, fronts),
    }
    if find_spec("pyarrow"):
        files["sweep.parquet"] = table.to_parquet(index=False)
    else:
        note("sweep.parquet is left out: it needs pyarrow, as in pip install 'parapipe[sweep]'")
    write_folder(folder, {Path(name): content for name, content in files.items()})


def _changed_options(options: MapOptions) -> dict[str, Any]:
    """Return the options that are not at their defaults, as plain values."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in options.changed().items()
    }
