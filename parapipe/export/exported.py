"""What an export has made, and the README.md of an exported folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parapipe.digits import plain
from parapipe.errors import ExportError, OutputError
from parapipe.files.atomic import atomic_folder
from parapipe.files.titles import model_title
from parapipe.plan.schema import Plan
from parapipe.plan.summary import plan_stages_title

README = "README.md"


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export has made.

    Parameters
    ----------
    target
        Name of the target.
    files
        Files written.
    size_bytes
        Their bytes, added up.
    summary
        What was made, in lines for people.
    notes
        What does no harm but should be known, a sentence each.
    text
        What a target that needs no files has to say; empty if it wrote files.
    accuracy
        Of an export that was checked: for each tensor that a segment hands on, its cosine with the
        float model's, the least one of what the segment read, and who makes it.
    """

    target: str
    files: tuple[Path, ...]
    size_bytes: int
    summary: tuple[str, ...]
    notes: tuple[str, ...] = ()
    text: str = ""
    accuracy: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self) | {
            "files": [str(path) for path in self.files],
            "summary": list(self.summary),
            "notes": list(self.notes),
            "accuracy": list(self.accuracy),
        }


@dataclass(frozen=True, slots=True)
class Written:
    """A single file that a target writes.

    Parameters
    ----------
    is_own
        Tells by a file's content whether an export to the target has written it.
    """

    path: Path
    is_own: Callable[[bytes], bool]


def json_of(content: bytes) -> dict[str, Any]:
    """Return a JSON object that a file holds; an empty one if it holds none."""
    document: Any = None
    with suppress(ValueError):
        document = json.loads(content)
    return document if isinstance(document, dict) else {}


def refuse_converted(plan: Plan, target: str) -> None:
    """Raise an ExportError if a plan wants other types than the model's, which a target writes."""
    types = sorted({p.data_type for p in plan.processors if p.data_type} - {"float32"})
    if types:
        raise ExportError(
            f"the plan is for {', '.join(types)}, and the target {target} writes the model's own "
            "types: export it to onnxruntime, or map with `precision` model"
        )


def export_folder(
    target: str,
    destination: Path | None,
    schema: str,
    earlier: Callable[[Mapping[str, Any]], Iterable[str]],
    write: Callable[[Path], tuple[tuple[str, ...], tuple[str, ...]]],
    *,
    document: str = "plan.json",
    readme: str,
) -> Exported:
    """Write the folder of a target; an earlier export that stands there is replaced.

    Parameters
    ----------
    schema
        That of the document that the target writes.
    earlier
        Paths of files beside a document of this schema, or names of folders that are all its own.
    write
        Writes into an empty folder; returns summary and notes, see `Exported`.
    document
        Name of the document's file.
    readme
        What stands in its README.md.

    Raises
    ------
    ExportError
        If no folder is named.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    if destination is None:
        raise ExportError(f"the target {target} makes a folder: name it, as in `… DIR`")
    _refuse_other_files(destination, document, schema, earlier)
    with atomic_folder(destination) as folder:
        summary, notes = write(folder)
        (folder / README).write_text(readme, encoding="utf-8")
    files = tuple(sorted(path for path in destination.rglob("*") if path.is_file()))
    return Exported(target, files, sum(path.stat().st_size for path in files), summary, notes)


def _refuse_other_files(
    folder: Path, name: str, schema: str, earlier: Callable[[Mapping[str, Any]], Iterable[str]]
) -> None:
    """Refuse a folder that holds what is not of an earlier export."""
    if not folder.is_dir():
        return
    document: dict[str, Any] = {}
    with suppress(OSError):
        document = json_of((folder / name).read_bytes())
    ours = document.get("schema") == schema
    expected = {name, README, *earlier(document)} if ours else set()
    if not (strange := set(_unexpected_paths(folder, expected))):
        return
    if not ours and (folder / name).is_file():
        raise OutputError(
            f"{folder}: its {name} is not one of this target, or has been edited so that it cannot "
            f"be read as one (`schema` {schema}): it does not say which files an export has "
            "written; name a new folder"
        )
    raise OutputError(
        f"{folder}: holds '{min(strange)}', which no export has written"
        f"{f', unless its {name} named it and has been edited' if ours else ''}; name a new folder"
    )


def _unexpected_paths(folder: Path, expected: set[str]) -> Iterator[str]:
    """Yield paths in a folder that are not known, nor within a folder that is."""
    parents = {str(parent) for path in expected for parent in Path(path).parents}
    for path in folder.rglob("*"):
        within = path.relative_to(folder)
        names = {str(within), *map(str, within.parents)} - {"."}
        if not names & expected and str(within) not in parents:
            yield str(within)


def readme(plan: Plan, target: str, use: str, files: Mapping[str, str]) -> str:
    """Return the text.

    Parameters
    ----------
    use
        Markdown that says how the folder is used.
    files
        What each file is, by its name.
    """
    predicted, frame = plan.predicted, "pattern" if plan.models else "frame"
    stages = plan_stages_title(plan)
    per_s = f"{plain(1 / predicted.sustained_period_s)} {frame}s/s sustained"
    processors = "\n".join(f"| {each.name} | {each.backend} |" for each in plan.processors)
    rows = "\n".join(f"| `{name}` | {what} |" for name, what in files.items())
    return f"""# {model_title(plan.model.name)} on {plan.platform}

Written by `parapipe export --to {target}`, from a plan with the stages {stages}. Predicted: latency
{plain(predicted.latency_s * 1e3)} ms, {per_s},
{plain(predicted.energy_j * 1e3)} mJ per {frame}.

{use.strip()}

| processor | backend |
|---|---|
{processors}

| file | what |
|---|---|
{rows}
"""
