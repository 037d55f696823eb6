"""`import parapipe` offers the public nouns and verbs, each loaded when it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path

import pytest
from pydantic import BaseModel

import parapipe
from parapipe.errors import FrontError
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
    assert {*imported} == {*parapipe.__all__}
    for name, module in imported.items():
        assert getattr(import_module(module), name) is getattr(parapipe, name)
    assert sorted(dir(parapipe)) == sorted([*parapipe.__all__, "__version__"])


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'parapipe' has no attribute 'mapp'"):
        parapipe.mapp  # noqa: B018


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("map_model", "map"), ("load_modell", "load_model"),
     ("Front", "ParetoFront"), ("verify", "verify_plan")],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_the_near_ones(wrong, meant) -> None:
    with pytest.raises(AttributeError, match=rf"'{wrong}'; did you mean .*'{meant}'"):
        getattr(parapipe, wrong)


def test_nothing_heavy_is_loaded_before_a_name_is_used() -> None:
    script = "import parapipe, sys; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"onnx", "numpy", "ortools", "pandas", "pydantic", "matplotlib", "click"}
    assert heavy.isdisjoint(done.stdout.split())


def test_every_name_is_there_without_onnx_runtime() -> None:
    script = (
        "import parapipe, sys; sys.modules['onnxruntime'] = None; "
        "print([name for name in parapipe.__all__ if getattr(parapipe, name) is None])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


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


@pytest.fixture(scope="module")
def shown(branchy_front, branchy_folder):
    """An object of each kind that the API returns, and what its line begins with."""
    best, plan = branchy_front.best("latency"), branchy_front.best("latency").plan()
    stored = parapipe.load_front(branchy_folder)
    simulated, explained = plan.simulate(frames=5), parapipe.explain(branchy_folder)
    figures = f": {best.latency_s * 1e3:.1f} ms, {best.throughput_fps:.2f} fps, "
    return [
        (best, f"<{best.id} {best.drawing}{figures}"),
        (stored[best.id], f"<{best.id} {best.drawing}{figures}"),
        (plan, f"<Plan of {plan.model.name} on amlogic-a311d, "),
        (stored.best(), f"<{best.id} {best.drawing}{figures}"),
        (parapipe.pick(stored), f"<Pick <{best.id} "),
        (simulated, f"<simulation of {plan.model.name} on amlogic-a311d: 5 frames, median "),
        (simulated.document, "RunDocument("),
        (explained, "ExplanationDocument("),
        (branchy_front, "<ParetoFront of "),
        (branchy_front.document, "FrontDocument("),
        (stored, "<StoredFront of "),
    ]


def test_the_signatures_of_map_and_its_options_name_types_and_no_bounds() -> None:
    for each in (parapipe.map, parapipe.MapOptions):
        told = str(signature(each))
        assert "energy_resolution: 'ShareToOne' = 0.05" in told
        assert "Annotated" not in told
        assert "Must" not in told


def test_what_the_api_returns_is_printed_as_one_line(shown) -> None:
    for each, begins in shown:
        assert str(each) == repr(each)
        assert str(each).startswith(begins)
        assert "\n" not in str(each)
        assert len(str(each)) < 600


def test_completion_shows_no_name_of_pydantic(shown) -> None:
    for each, _ in shown:
        names = {name for name in dir(each) if not name.startswith("_")}
        assert names.isdisjoint(dir(BaseModel))
    plan = shown[2][0]
    assert {"run", "simulate", "export", "verify", "save", "predicted"} <= set(dir(plan))
    assert {"latency_s", "plan", "plot_gantt"} <= set(dir(shown[0][0]))


def test_a_front_is_indexed_by_place_too(branchy_front, branchy_folder) -> None:
    for front in (branchy_front, parapipe.load_front(branchy_folder)):
        assert (front[0].id, front[-1].id) == ("c01", list(front)[-1].id)


@pytest.mark.parametrize("key", [99, -99, "c99", "hybrid-X", 1.5])
@pytest.mark.parametrize("kind", [FrontError, KeyError, IndexError])
def test_a_configuration_that_there_is_not_is_an_error_of_parapipe(
    branchy_front, branchy_folder, key, kind
) -> None:
    for front in (branchy_front, parapipe.load_front(branchy_folder)):
        with pytest.raises(kind) as caught:
            front[key]
        assert isinstance(caught.value, parapipe.ParapipeError)
        assert str(caught.value).startswith(("no configuration", "name a configuration by id"))


def test_a_wrong_keyword_of_a_method_is_answered_with_the_near_one(branchy_front) -> None:
    plan = branchy_front.best().plan()
    with pytest.raises(parapipe.ParapipeError) as caught:
        plan.simulate(frame=3)
    assert str(caught.value) == "simulate: there is no argument 'frame'; did you mean 'frames'?"
    with pytest.raises(TypeError, match=r"^best: there is no argument 'max_latency'; did you mean"):
        branchy_front.best(max_latency=0.1)
    with pytest.raises(parapipe.ParapipeError, match=r"^map: missing a required argument: 'platf"):
        parapipe.map("zoo:alexnet")


def test_a_stored_front_answers_as_the_one_that_was_written(branchy_front, branchy_folder) -> None:
    stored = parapipe.load_front(branchy_folder)
    picked = stored.best("energy", max_latency_s=1.0)
    assert picked.id == branchy_front.best("energy", max_latency_s=1.0).id
    assert parapipe.pick(branchy_folder, "energy").configuration == stored.best("energy")
    assert picked.plan().simulate(frames=3).document.frames == 3
    assert stored.to_pandas().equals(branchy_front.to_pandas())
    assert stored.to_json() == branchy_front.to_json()
    assert stored.content().plans == branchy_front.content().plans


@pytest.mark.parametrize("picture", ["plot", "plot_gantt", "plot_utilisation", "plot_network"])
def test_a_stored_configuration_is_drawn_as_the_one_that_was_written(
    branchy_front, branchy_folder, picture
) -> None:
    stored = parapipe.load_front(branchy_folder)
    for front in (branchy_front, stored):
        assert front.plot().get_title() == branchy_front.plot().get_title()
    first, second = (getattr(front[-1], picture)() for front in (branchy_front, stored))
    assert [each.get_text() for each in first.texts] == [each.get_text() for each in second.texts]
    assert first.get_title() == second.get_title() != ""
    assert len(first.patches) == len(second.patches)


def test_a_front_has_slices_and_tells_what_is_in_it(branchy_front, branchy_folder) -> None:
    for front in (branchy_front, parapipe.load_front(branchy_folder)):
        assert front[1:] == tuple(front)[1:]
        assert front[::-1][0] is front[-1]
        assert front[5:5] == ()
        assert "c01" in front
        assert front[0].names[0] in front
        assert front[0] in front
        assert "c99" not in front
        assert 0 not in front


def test_a_row_has_all_figures_that_demands_are_made_of(branchy_front, branchy_folder) -> None:
    for row in (*branchy_front, *parapipe.load_front(branchy_folder)):
        assert row.throughput_fps == 1 / row.period_s
        assert row.power_w == row.energy_j / row.period_s


def test_fronts_are_compared_in_memory_and_in_folders(branchy_front, branchy_folder) -> None:
    stored = parapipe.load_front(branchy_folder)
    for one, other in ((branchy_front, stored), (stored, branchy_folder)):
        assert parapipe.diff(one, other).same
    with pytest.raises(parapipe.ParapipeError, match=r"^diff: old must be a front or the path of"):
        parapipe.diff(1, stored)


def test_the_options_of_map_are_told_in_the_words_of_python() -> None:
    from parapipe.cli.verb_options import parameter_texts

    told = parameter_texts(getdoc(parapipe.MapOptions))
    for verb in ("map", "pick", "simulate_plan", "run_plan", "split", "evaluate", "explain"):
        told = {**told, **parameter_texts(getdoc(getattr(parapipe, verb)))}
    for name, words in told.items():
        text = re.sub(r"`[^`]*`", "", words)  # commands
        assert " --" not in text, name
        assert not re.search(r"\bmay be repeated|\d(ms|mJ|MB|W)\b|=\d", text, re.I), name
