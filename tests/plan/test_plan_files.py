"""Plans survive the way to the disk and back; files that are no plans say what is wrong."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.errors import OutputError, PlanError
from parapipe.plan.build import build_plan
from parapipe.plan.schema import Operator, Plan
from parapipe.version import __version__
from tests.cases.plan_cases import drawn_plan, random_case


def refusal(tmp_path: Path, content: bytes | str | dict) -> str:
    """Return what loading this content complains of."""
    path = tmp_path / "p.json"
    content = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(PlanError) as caught:
        Plan.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def document() -> dict:
    return json.loads(drawn_plan().to_bytes())


def test_a_saved_plan_is_loaded_again(tmp_path: Path) -> None:
    drawn_plan().save(tmp_path / "p.json")
    assert Plan.load(tmp_path / "p.json") == drawn_plan()
    assert (tmp_path / "p.json").read_bytes() == drawn_plan().to_bytes()


@given(seed=st.integers(0, 10**9))
def test_any_plan_and_its_bytes_survive_the_way_to_json_and_back(seed) -> None:
    plan = build_plan(*random_case(seed))
    again = Plan.model_validate_json(plan.to_bytes())
    assert again == plan
    assert again.to_bytes() == plan.to_bytes()


VALUES = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)


@given(value=VALUES | st.lists(VALUES, max_size=4).filter(lambda v: len({*map(type, v)}) < 2))
def test_an_attribute_keeps_value_and_type(value) -> None:
    given_value = tuple(value) if isinstance(value, list) else value
    made = Operator(id="a", name="a", domain="", type="A", attributes={"k": given_value},
                    members=("a",), inputs=(), outputs=("a",))  # fmt: skip
    again = Operator.model_validate_json(made.model_dump_json()).attributes["k"]
    assert again == given_value
    assert repr(again) == repr(given_value)


def test_the_order_of_names_in_a_table_makes_no_difference() -> None:
    turned = document()
    turned["tensors"] = dict(reversed(turned["tensors"].items()))
    assert Plan.model_validate_json(json.dumps(turned)).to_bytes() == drawn_plan().to_bytes()


def test_numbers_are_written_with_the_fewest_digits_that_give_them_back() -> None:
    third = document()["predicted"]["throughput_fps"]
    assert third == 1 / 3
    assert b'"throughput_fps": 0.3333333333333333,' in drawn_plan().to_bytes()


def test_every_operator_has_a_line_of_its_own() -> None:
    lines = drawn_plan().to_bytes().decode().splitlines()
    assert sum(line.startswith('  {"id": ') for line in lines) == 5


def test_letters_beyond_ascii_stay_readable(tmp_path: Path) -> None:
    named = drawn_plan().model_copy(update={"platform": "Brett-größe"})
    named.save(tmp_path / "p.json")
    assert "größe" in (tmp_path / "p.json").read_text(encoding="utf-8")
    assert Plan.load(tmp_path / "p.json") == named


def test_a_place_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"nowhere/p\.json: cannot be written"):
        drawn_plan().save(tmp_path / "nowhere" / "p.json")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(("name", "why"), [("no.json", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name, why) -> None:
    with pytest.raises(PlanError, match=rf"cannot be read \({why}"):
        Plan.load(tmp_path / name)


def test_what_is_no_json_names_the_line(tmp_path: Path) -> None:
    text = drawn_plan().to_bytes().decode()
    broken = text.replace('"platform":', '"platform"', 1)
    line = text[: text.index('"platform":')].count("\n") + 1
    assert refusal(tmp_path, broken).startswith(f":{line}: is not JSON (Expecting ':' delimiter")


@pytest.mark.parametrize("content", ["", "{", "plan", "{}{}", "\ufeff{}"])
def test_what_is_no_json_at_all_is_said(tmp_path: Path, content) -> None:
    assert refusal(tmp_path, content).startswith(":1: is not JSON (")


def test_a_truncated_plan_is_said_to_be_no_json(tmp_path: Path) -> None:
    content = drawn_plan().to_bytes()
    assert "is not JSON" in refusal(tmp_path, content[: len(content) // 2])


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    assert "not text in UTF-8" in refusal(tmp_path, b"\x08\x07\x12\xff\xfe")


def test_a_key_that_stands_twice_is_said(tmp_path: Path) -> None:
    message = refusal(tmp_path, '{"schema": "parapipe/plan/1", "schema": "parapipe/plan/1"}')
    assert "'schema' stands twice in one table" in message


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    assert "is no plan" in refusal(tmp_path, "[" * 100_000)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("[]", "names no schema"),
        ("7", "names no schema"),
        ("{}", "names no schema"),
        ('{"schema": 1}', "names no schema"),
        ('{"schema": "parapipe/plan/2"}', 'is of schema "parapipe/plan/2"'),
        ('{"schema": "parapipe/run/2"}', 'is of schema "parapipe/run/2"'),
        (
            '{"schema": "parapipe/plan/2", "parapipe": "9.9"}',
            'is of schema "parapipe/plan/2", written by parapipe 9.9',
        ),
    ],
)
def test_another_schema_is_named_and_so_is_ours(tmp_path: Path, content, found) -> None:
    message = refusal(tmp_path, content)
    assert message.startswith(f": {found}, and parapipe {__version__} reads plans of schema ")
    assert '"parapipe/plan/1"' in message
    assert message.endswith(", or use the version that wrote it") == ("9.9" in message)


def test_a_front_in_the_place_of_a_plan_is_told_what_it_is(tmp_path: Path) -> None:
    assert refusal(tmp_path, '{"schema": "parapipe/front/1"}') == (
        ": is a front, not a plan; give one of its plans, as in plans/c01.json; `parapipe pick` "
        "names the best"
    )


def test_a_plan_says_which_version_wrote_it_and_those_before_did_not(tmp_path: Path) -> None:
    assert document()["parapipe"] == __version__
    older = document()
    del older["parapipe"]
    (tmp_path / "old.json").write_text(json.dumps(older))
    old = Plan.load(tmp_path / "old.json")
    assert json.loads(old.to_bytes()) == older
    assert old == drawn_plan().model_copy(update={"parapipe": None})


def test_a_field_of_a_later_version_is_refused_with_that_version(tmp_path: Path) -> None:
    later = {**document(), "parapipe": "9.9", "colour": "red"}
    assert refusal(tmp_path, later) == (
        ': is of schema "parapipe/plan/1", written by parapipe 9.9, with 1 mistake: colour: is '
        "unknown; write the plan again with `parapipe map`, or use the version that wrote it"
    )


def test_all_mistakes_are_named_at_once_by_their_path(tmp_path: Path) -> None:
    wrong = document()
    wrong["stages"][0]["time_s"] = -1
    wrong["stages"][1]["processors"][0]["operators"][1]["lag"] = "one"
    wrong["operators"][0]["attributes"]["group"] = None
    wrong["operators"][0]["constants"][0]["recipe"] = {"kind": "computed", "nodes": []}
    wrong["tensors"]["a"]["shape"][1] = 2.5
    wrong["transfers"][0]["kind"] = "teleport"
    wrong["model"]["sha256"] = "abc"
    wrong["colour"] = "red"
    del wrong["predicted"]["energy_j"]
    message = refusal(tmp_path, wrong)
    assert message.startswith(': is of schema "parapipe/plan/1", with 9 mistakes: ')
    for place in (
        "model.sha256: ",
        "tensors.a.shape[1]: input should be a valid integer",
        "operators[0].attributes.group: should be an integer, a finite number, a text, or a list",
        "operators[0].constants[0].recipe.nodes: is empty",
        "stages[0].time_s: input should be greater than or equal to 0",
        " and 4 more; ",
    ):
        assert place in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, number) -> None:
    text = drawn_plan().to_bytes().decode().replace('"energy_j": 0.5', f'"energy_j": {number}')
    assert "predicted.energy_j: input should be a finite number" in refusal(tmp_path, text)


def test_a_plan_that_breaks_a_rule_can_be_loaded_to_be_verified(tmp_path: Path) -> None:
    wrong = document()
    wrong["predicted"]["latency_s"] = 1.0
    (tmp_path / "p.json").write_text(json.dumps(wrong))
    assert Plan.load(tmp_path / "p.json").predicted.latency_s == 1.0


def test_what_a_run_of_an_exported_folder_reads_is_no_plan(tmp_path):
    message = refusal(tmp_path, '{"schema": "parapipe/onnxruntime/1"}')
    assert "is what run.py of an exported folder reads, not a plan; name the plan" in message
