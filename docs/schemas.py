"""Writes the formats of documents as JSON Schema into docs/schema: python docs/schemas.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from parapipe.export.segment_manifest import Manifest
from parapipe.files.atomic import write_atomically
from parapipe.formats.evaluation import EvaluationDocument
from parapipe.formats.explanation import ExplanationDocument
from parapipe.formats.front import FrontDocument
from parapipe.formats.inspection import InspectionDocument
from parapipe.formats.run import RunDocument
from parapipe.plan.armcl_plan import LibraryPlan
from parapipe.plan.schema import Plan
from parapipe.runtime.document import SessionPlan

PUBLISHED: Mapping[str, type] = {
    "armcl": LibraryPlan,
    "evaluation": EvaluationDocument,
    "explanation": ExplanationDocument,
    "front": FrontDocument,
    "inspection": InspectionDocument,
    "onnxruntime": SessionPlan,
    "plan": Plan,
    "run": RunDocument,
    "segments": Manifest,
}
"""Formats by name."""


def json_schema(model: type) -> bytes:
    """Return the JSON Schema of a format, as JSON in UTF-8; the same model, the same bytes."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(model).json_schema(by_alias=True),
    }
    return (json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def publish(folder: Path) -> tuple[Path, ...]:
    """Write `NAME.schema.json` for every format; return the paths.

    Raises
    ------
    OutputError
        If the folder is missing or cannot be written.
    """
    paths = {folder / f"{name}.schema.json": model for name, model in PUBLISHED.items()}
    for path, model in paths.items():
        write_atomically(path, json_schema(model))
    return tuple(paths)


if __name__ == "__main__":
    publish(Path(__file__).with_name("schema"))
