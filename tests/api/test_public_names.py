"""`import parapipe` offers the public nouns and verbs, each loaded when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

import parapipe
from parapipe.plan import schema

SOURCE = Path(parapipe.__file__)


@pytest.mark.parametrize("name", parapipe.__all__)
def test_every_public_name_is_there_and_documented(name) -> None:
    assert getattr(parapipe, name).__doc__


def test_editors_and_type_checkers_see_the_same_names() -> None:
    (block,) = (
        node
        for node in ast.parse(SOURCE.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {name: f"parapipe.{parapipe._MODULE_OF[name]}" for name in parapipe.__all__}
    assert sorted(dir(parapipe)) == sorted(parapipe.__all__)


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'parapipe' has no attribute 'mapp'"):
        parapipe.mapp  # noqa: B018


def test_nothing_heavy_is_loaded_before_a_name_is_used() -> None:
    script = "import parapipe, sys; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"onnx", "numpy", "ortools", "pandas", "pydantic", "matplotlib", "click"}
    assert heavy.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("verb", ["run", "simulate", "export", "verify"])
def test_a_verb_on_a_plan_is_a_method_of_it(verb) -> None:
    function = getattr(parapipe, f"{verb}_plan")
    assert getattr(parapipe.Plan, verb) is function
    assert next(iter(signature(function).parameters)) == "plan"


def test_a_configuration_of_a_front_makes_a_plan_with_methods(branchy_front, tmp_path) -> None:
    plan = branchy_front.best("period").plan()
    assert plan.verify().operators == len(plan.operators)
    assert plan.simulate(frames=5).document.frames == 5
    plan.save(tmp_path / "plan.json")
    assert parapipe.load_plan(tmp_path / "plan.json") == plan
    assert schema.Plan.load(tmp_path / "plan.json") == plan


def test_a_configuration_of_a_front_is_printed_as_one_line(branchy_front) -> None:
    best = branchy_front.best("latency")
    assert str(best) == repr(best)
    assert str(best).startswith(f"<{best.id} {best.drawing}: ")
    assert "\n" not in str(best)


def test_a_stored_front_answers_as_the_one_that_was_written(branchy_front, branchy_folder) -> None:
    stored = parapipe.load_front(branchy_folder)
    picked = stored.best("energy", max_latency_s=1.0)
    assert picked.configuration.id == branchy_front.best("energy", max_latency_s=1.0).id
    assert parapipe.pick(branchy_folder, "energy") == stored.best("energy")
    assert stored.plan(picked.configuration.id).simulate(frames=3).document.frames == 3
    assert len(stored.to_pandas()) == len(branchy_front)
    assert parapipe.load_plan(picked.plan) == stored.plan(picked.configuration.id)
