"""The published JSON Schemas are those of the code."""

import json
from pathlib import Path

import pytest
from plan_changes import DRAWN
from pydantic import BaseModel

from parapipe.errors import OutputError
from parapipe.plan.publish import PUBLISHED, json_schema, publish

DOCUMENTED = Path(__file__).parents[2] / "docs" / "schema"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_schema_in_docs_is_the_one_of_the_code(name) -> None:
    """Mend with `python -m parapipe.plan.publish docs/schema`."""
    assert (DOCUMENTED / f"{name}.schema.json").read_bytes() == json_schema(PUBLISHED[name])


def test_the_schema_names_the_fields_as_they_stand_in_the_file() -> None:
    schema = json.loads(json_schema(PUBLISHED["plan"]))
    assert set(schema["properties"]) == set(DRAWN)
    assert set(schema["$defs"]["Transfer"]["properties"]) == set(DRAWN["transfers"][0])


def test_every_field_is_explained() -> None:
    schema = json.loads(json_schema(PUBLISHED["plan"]))
    silent = [
        f"{name}.{field}"
        for name, record in {"Plan": schema, **schema["$defs"]}.items()
        for field, about in record["properties"].items()
        if not about.get("description")
    ]
    assert silent == []


def test_any_other_model_can_be_published(tmp_path: Path) -> None:
    class Note(BaseModel):
        text: str

    assert publish(tmp_path, {"note": Note}) == (tmp_path / "note.schema.json",)
    assert json.loads((tmp_path / "note.schema.json").read_text())["required"] == ["text"]


def test_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"plan\.schema\.json: cannot be written"):
        publish(tmp_path / "nowhere")
