"""What an export has made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
        return {
            "target": self.target,
            "files": [str(path) for path in self.files],
            "size_bytes": self.size_bytes,
            "summary": list(self.summary),
            "notes": list(self.notes),
            "text": self.text,
        }


def exported_folder(
    target: str, folder: Path, summary: tuple[str, ...], notes: tuple[str, ...] = ()
) -> Exported:
    """Say what stands in a folder that a target has written."""
    files = tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
    return Exported(target, files, sum(path.stat().st_size for path in files), summary, notes)
