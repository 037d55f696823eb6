"""Damaged plans, fronts and other documents: a command goes on, or says what is wrong."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import yaml

import parapipe as api
from tests.cases.damaged_documents import damaged_json, damaged_yaml

TARGETS = sorted({*api.export_targets()} - {"arm-co-up", "genai"})  # those run a few networks only
PLAN = {
    "verify": ("verify", "{it}"),
    "simulate": ("simulate", "{it}", "--frames", "20"),
    "simulate by a strategy": ("simulate", "{it}", "--frames", "20", "--strategy", "steal"),
    "run": ("run", "{it}", "--frames", "2", "--warmup", "1", "--quiet", "--patience", "5s"),
    "compare": ("compare", "{it}", "{run}"),
    **{f"export {name}": ("export", "--to", name, "{it}", "{out}") for name in TARGETS},
}
FRONT = {
    "report": ("report", "{folder}"),
    "pick": ("pick", "{folder}", "--minimise", "energy"),
    "diff": ("diff", "{front}", "{folder}"),
    "explain": ("explain", "{folder}", "c01"),
}
OTHER = {
    "compare a run": ("compare", "{plan}", "{it}"),
    "evaluate": ("evaluate", "{model}", "--platform", "amlogic-a311d", "--assignment", "{it}"),
    "platforms check": ("platforms", "check", "{it}"),
    "sweep": ("sweep", "{it}", "--out", "{out}", "--quiet"),
}
ALL = {**PLAN, **FRONT, **OTHER}
FEW, MANY = 12, 3000
NEVER = ("mistake in parapipe", "Traceback", "not enough memory", "check that the place exists")
PLATFORMS = Path(__file__).parents[2] / "platforms"


@pytest.fixture(scope="module")
def documents(branchy_folder, branchy_front, tmp_path_factory):
    """Sound documents: what commands are given, and what is damaged of it."""
    folder = tmp_path_factory.mktemp("sound")
    interleaved = folder / "interleaved"
    model = branchy_front.document.model
    api.map(model, "amlogic-a311d", cache=False, jobs=1, interleave="auto").write(interleaved)
    plans = [
        _on_any_cores(json.loads(path.read_text()))
        for path in sorted((interleaved / "plans").glob("*.json"))
    ]
    plan = folder / "plan.json"
    plan.write_text(json.dumps(plans[0]))
    measured = api.run_plan(plan, frames=3, warmup=1).to_json()
    run = folder / "run.json"
    run.write_text(json.dumps(measured))
    names = {operator["id"]: "big" for operator in plans[0]["operators"]}
    return {
        "paths": {"front": interleaved, "plan": plan, "run": run, "model": model},
        "plans": plans,
        "front": json.loads((interleaved / "front.json").read_text()),
        "compare a run": measured,
        "evaluate": {"schema": "parapipe/assignment/1", "operators": names},
        "platforms check": yaml.safe_load((PLATFORMS / "amlogic-a311d.yaml").read_text()),
        # nothing is mapped: whether the file is right is seen before
        "sweep": {"models": ["no.onnx"], "platforms": ["amlogic-a311d"], "options": {"a": {}}},
    }


def _on_any_cores(document):
    for processor in document["processors"]:
        processor["cores"] = []
    return document


def check(parapipe, documents, command, folder, number) -> None:
    """Damage what a command is given, and see that it goes on or says in one line what is wrong."""
    rng = random.Random(f"{command} {number}")
    places = dict(documents["paths"], out=folder / "out", it=folder / "it", folder=folder / "front")
    if command in FRONT:
        shutil.copytree(places["front"], places["folder"])
        damaged = places["folder"] / rng.choice(("front.json", "plans/c01.json"))
        damaged.write_bytes(damaged_json(json.loads(damaged.read_text()), rng))
    elif command in PLAN:
        places["it"].write_bytes(damaged_json(rng.choice(documents["plans"]), rng))
    else:
        damage = damaged_json if command == "compare a run" else damaged_yaml
        places["it"].write_bytes(damage(documents[command], rng))
    ended = parapipe(*(word.format(**places) for word in ALL[command]))
    assert ended.code in (0, 1), (number, ended)
    if ended.code:
        (line, *more) = [each for each in ended.err.splitlines() if ": note: " not in each]
        assert line.startswith("parapipe: "), (number, line)
        assert not [word for word in NEVER if word in line], (number, line)
        assert all(each.startswith("  ") for each in more), (number, more)


@pytest.mark.parametrize("command", ALL)
def test_a_damaged_document_goes_on_or_is_refused(parapipe, documents, tmp_path, command) -> None:
    for number in range(FEW):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(parapipe, documents, command, folder, number)


@pytest.mark.nightly
@pytest.mark.parametrize("command", ALL)
def test_many_damaged_documents_go_on_or_are_refused(
    parapipe, documents, tmp_path, command
) -> None:
    folder = tmp_path / "one"
    for number in range(FEW, MANY):
        folder.mkdir()
        check(parapipe, documents, command, folder, number)
        shutil.rmtree(folder)
