"""Writes the formats of documents as JSON Schema into docs/schema: python docs/schemas.py."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ModelSchema

from parapipe.documents.board_run import BoardRun
from parapipe.documents.difference import DifferenceDocument
from parapipe.documents.doubt import DrawsDocument
from parapipe.documents.evaluation import EvaluationDocument
from parapipe.documents.explanation_schema import ExplanationDocument
from parapipe.documents.front_schema import FrontDocument
from parapipe.documents.inspection import InspectionDocument
from parapipe.documents.request_schema import RequestDocument
from parapipe.documents.run_schema import RunDocument
from parapipe.documents.shapes_schema import ShapesDocument
from parapipe.export.segment_manifest import Manifest
from parapipe.files.atomic import write_atomically
from parapipe.plan.schema import Plan
from parapipe.runtime.document import SessionPlan
from parapipe.sweeps.document import SweepDocument
from parapipe.targets.native.library_plan import LibraryPlan

PUBLISHED: Mapping[str, type] = {
    "armcl": LibraryPlan,
    "board-run": BoardRun,
    "diff": DifferenceDocument,
    "draws": DrawsDocument,
    "evaluation": EvaluationDocument,
    "explanation": ExplanationDocument,
    "front": FrontDocument,
    "inspection": InspectionDocument,
    "onnxruntime": SessionPlan,
    "plan": Plan,
    "request": RequestDocument,
    "run": RunDocument,
    "segments": Manifest,
    "shapes": ShapesDocument,
    "sweep": SweepDocument,
}
"""Formats by name."""


class _Explained(GenerateJsonSchema):
    """JSON Schema in which the text below a field of a record describes it.

    Records do not hold these texts themselves: to find them in the source takes longer than all
    else that a class is made of.
    """

    def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
        """Return the schema of a record, its fields described."""
        found = super().model_schema(schema)
        record = schema["cls"]
        texts = {name: text for each in reversed(record.__mro__) for name, text in _texts(each)}
        for name, field in record.model_fields.items():
            if name in texts:
                found["properties"][field.alias or name]["description"] = texts[name]
        return found


def _texts(record: type) -> Iterator[tuple[str, str]]:
    """Yield the fields that a class declares, each with the text below it."""
    if not record.__module__.startswith("parapipe."):
        return
    (declared,) = ast.parse(inspect.getsource(record)).body
    assert isinstance(declared, ast.ClassDef)
    for field, text in pairwise(declared.body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            yield field.target.id, inspect.cleandoc(ast.literal_eval(text.value))


def json_schema(model: type) -> bytes:
    """Return the JSON Schema of a format, as JSON in UTF-8; the same model, the same bytes."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(model).json_schema(by_alias=True, schema_generator=_Explained),
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
