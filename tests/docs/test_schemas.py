"""The published JSON Schemas are those of the code."""

import json
import runpy
from pathlib import Path

import pytest

from parapipe.errors import OutputError

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTED = DOCS / "schema"
SCRIPT = runpy.run_path(str(DOCS / "schemas.py"))
PUBLISHED, json_schema, publish = (SCRIPT[name] for name in ("PUBLISHED", "json_schema", "publish"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_schema_in_docs_is_the_one_of_the_code(name) -> None:
    """Update with `python docs/schemas.py`."""
    assert (DOCUMENTED / f"{name}.schema.json").read_bytes() == json_schema(PUBLISHED[name])


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_field_is_explained(name) -> None:
    schema = json.loads(json_schema(PUBLISHED[name]))
    silent = [
        f"{record}.{field}"
        for record, about in {name: schema, **schema["$defs"]}.items()
        for field, explained in about["properties"].items()
        if not explained.get("description")
    ]
    assert silent == []


def test_the_schema_names_the_fields_as_they_stand_in_the_file() -> None:
    plan = json.loads(json_schema(PUBLISHED["plan"]))
    assert {"schema", "model", "stages"} <= set(plan["properties"])
    assert {"from", "to", "queue_depth"} <= set(plan["$defs"]["Transfer"]["properties"])
    front = json.loads(json_schema(PUBLISHED["front"]))
    assert {"schema", "model", "configurations", "coverage"} <= set(front["properties"])


def test_all_formats_are_published_into_a_folder(tmp_path: Path) -> None:
    names = [f"{name}.schema.json" for name in sorted(PUBLISHED)]
    assert [path.name for path in publish(tmp_path)] == names


def test_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"armcl\.schema\.json: cannot be written"):
        publish(tmp_path / "nowhere")
