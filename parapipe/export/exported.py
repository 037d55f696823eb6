"""What an export has made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parapipe.errors import ExportError, OutputError
from parapipe.files.atomic import whole_folder
from parapipe.plan.schema import Plan

_PLAN = "plan.json"


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
    """

    target: str
    files: tuple[Path, ...]
    size_bytes: int
    summary: tuple[str, ...]
    notes: tuple[str, ...] = ()
    text: str = ""

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return asdict(self) | {
            "files": [str(path) for path in self.files],
            "summary": list(self.summary),
            "notes": list(self.notes),
        }


def refuse_converted(plan: Plan, target: str) -> None:
    """Raise an ExportError if a plan wants other types than the model's, which a target writes."""
    types = sorted({p.data_type for p in plan.processors if p.data_type} - {"float32"})
    if types:
        raise ExportError(
            f"the plan is for {', '.join(types)}, and the target {target} writes the model's own "
            "types: export it to onnxruntime, or map with --precision model"
        )


def export_folder(
    target: str,
    destination: Path | None,
    schema: str,
    earlier: Callable[[Mapping[str, Any]], Iterable[str]],
    write: Callable[[Path], tuple[tuple[str, ...], tuple[str, ...]]],
) -> Exported:
    """Write the folder of a target; an earlier export that stands there is replaced.

    Parameters
    ----------
    schema
        That of the `plan.json` that the target writes.
    earlier
        Names of the files beside a `plan.json` of this schema.
    write
        Writes into an empty folder; returns summary and notes, see `Exported`.

    Raises
    ------
    ExportError
        If no folder is named.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    if destination is None:
        raise ExportError(f"the target {target} makes a folder: name it, as in `… DIR`")
    _refuse_others(destination, schema, earlier)
    with whole_folder(destination) as folder:
        summary, notes = write(folder)
    files = tuple(sorted(path for path in destination.rglob("*") if path.is_file()))
    return Exported(target, files, sum(path.stat().st_size for path in files), summary, notes)


def _refuse_others(
    folder: Path, schema: str, earlier: Callable[[Mapping[str, Any]], Iterable[str]]
) -> None:
    """Refuse a folder that holds what is not of an earlier export."""
    if not folder.is_dir():
        return
    document: Any = None
    with suppress(OSError, ValueError):
        document = json.loads((folder / _PLAN).read_bytes())
    ours = isinstance(document, dict) and document.get("schema") == schema
    strange = {path.name for path in folder.iterdir()} - (
        {_PLAN, *earlier(document)} if ours else set()
    )
    if strange:
        raise OutputError(
            f"{folder}: holds '{min(strange)}', which no export has written; name a new folder"
        )
