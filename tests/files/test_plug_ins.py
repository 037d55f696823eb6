"""Packages that add something to parapipe by entry points: found, used, and named if wrong."""

from __future__ import annotations

import csv
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import parapipe
from parapipe.errors import ArgumentError, MappingError, PlatformError, StrategyError
from parapipe.export.targets import TARGETS
from parapipe.platform.catalogue import platforms
from parapipe.platform.load import find_platform
from parapipe.problems.method import Method, answer_keys
from parapipe.search.options import MapOptions
from parapipe.search.registry import SEARCHES, check_search, requested_searches
from parapipe.solvers.registry import MAPPERS, mapper
from parapipe.strategies.registry import STRATEGIES, strategy
from tests.cases.installed_package import EXAMPLE, install, install_example
from tests.cases.nightly import nightly_from

REPOSITORY = Path(__file__).parents[2]
OPERATORS = {"a", "b", "c", "d", "e", "y"}
MODEL = """<ir_version: 8, opset_import: ["": 17]>
fork (float[1, 8, 96, 96] data) => (float[1, 8, 96, 96] y) {
  a = Conv <pads = [1, 1, 1, 1]> (data, w)
  b = Conv <pads = [1, 1, 1, 1]> (a, w)
  c = Conv <pads = [1, 1, 1, 1]> (b, w)
  d = Conv <pads = [1, 1, 1, 1]> (data, w)
  e = Conv <pads = [1, 1, 1, 1]> (d, w)
  y = Add (c, e)
}"""
QUICK = ("--interleave", "none", "--draws", "0", "--quiet", "--objectives", "latency-throughput")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of installed packages, with the example and a small model beside it."""
    folder = tmp_path_factory.mktemp("site")
    install_example(folder)
    model = onnx.parser.parse_model(MODEL)
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, (8, 8, 3, 3), [0.01] * 576)
    model.graph.initializer.append(weight)
    onnx.save(model, folder / "fork.onnx")
    return folder


@pytest.fixture(scope="module")
def front(site):
    """The folder of a front of the model on the package's board."""
    return mapped(site, "front", "example-board")


def mapped(site, name, platform, *options):
    """Map the model; return the folder of the front."""
    out = site / name
    command(site, "map", "fork.onnx", "--platform", platform, "--out", out, *QUICK, *options)
    return out


def command(site, *words):
    """Run a command where the packages are installed; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "parapipe.cli.main", *map(str, words)],
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{REPOSITORY}"},
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(folder):
    return json.loads((folder / "front.json").read_bytes())["configurations"]


def test_each_file_of_the_example_has_at_most_40_lines():
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".yaml", ".toml")]
    assert len(files) == 8
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 40 for path in files)


def test_its_page_shows_the_files_of_the_example():
    page = (REPOSITORY / "docs" / "plug-ins.md").read_text(encoding="utf-8")
    blocks = [block.partition("\n")[2] for block in page.split("```")[1::2]]
    for path in EXAMPLE.rglob("*"):
        if path.suffix in (".py", ".yaml", ".toml") and path.name != "__init__.py":
            assert path.read_text(encoding="utf-8") in blocks, path.name


def test_its_platform_is_listed_and_mapped_on(site, front):
    listed = json.loads(command(site, "platforms", "list", "--json"))["platforms"]
    (row,) = (each for each in listed if each["name"] == "example-board")
    assert row["processors"] == ["small", "large", "gpu"]
    assert row["file"] == str(site / "parapipe_example" / "board.yaml")
    assert "gpu-alone" in {name for each in rows(front) for name in each["names"]}


@pytest.fixture(scope="module")
def in_order(site):
    """The folder of a front by the package's mapper."""
    return mapped(site, "in-order", "amlogic-a311d", "--mapper", "in-order")


def test_its_mapper_solves(site, in_order):
    assert "in-order" in command(site, "map", "--help")
    document = json.loads((in_order / "front.json").read_bytes())
    assert document["options"]["mapper"] == "in-order"
    assert document["configurations"]


def test_its_search_adds_to_the_front_and_the_plan_is_right(site, in_order):
    options = ("--mapper", "in-order", "--search", "every-assignment")
    folder = mapped(site, "every-assignment", "amlogic-a311d", *options)
    added, before = (rows(each)[0] for each in (folder, in_order))
    assert added["latency_s"] < before["latency_s"]
    assert added["pareto"]
    assert not added["proven"]
    assert (
        "--search every-assignment" in json.loads((folder / "front.json").read_bytes())["command"]
    )
    command(site, "verify", folder / "plans" / f"{added['id']}.json")


def test_its_strategy_decides_in_a_simulation_and_on_this_machine(site, front):
    plan = front / "plans" / "c01.json"
    for verb in ("simulate", "run"):
        text = command(site, verb, plan, "--strategy", "oldest-first", "--frames", "3", "--json")
        assert json.loads(text)["strategy"] == "oldest-first"


def test_its_target_exports(site, front):
    command(site, "export", front / "plans" / "c01.json", site / "table.csv", "--to", "timetable")
    with (site / "table.csv").open(encoding="utf-8") as file:
        assert {row["operator"] for row in csv.DictReader(file)} == OPERATORS


def test_its_compiler_compiles(site, monkeypatch):
    monkeypatch.setenv("PARAPIPE_COMPILER_LISTING", sys.executable)
    listed = json.loads(command(site, "compilers", "list", "--json"))["compilers"]
    assert {row["name"]: row["version"] for row in listed}["listing"] == "1.0"
    out = site / "listing.txt"
    words = ("compilers", "compile", "fork.onnx", "--compiler", "listing", "--target", "paper")
    command(site, *words, "--out", out)
    assert out.read_text(encoding="utf-8").split() == ["a", "b", "c", "d", "e", "y"]


def test_a_map_without_it_looks_at_no_package(site):
    script = """
import sys
from importlib import metadata
def entry_points(look=metadata.entry_points, **given):
    asks = sys._getframe(1).f_globals["__name__"]
    assert not asks.startswith("parapipe"), asks
    return look(**given)
metadata.entry_points = entry_points
from parapipe.cli.command_line import run
map = ["map", "fork.onnx", "--platform", "amlogic-a311d", "--mapper", "fine", "--out", "plain"]
for words in (["--help"], map, ["export", "plain", "c01", "exported", "--to", "segments"],
              ["simulate", "plain", "c01", "--strategy", "steal"]):
    assert run(words) == 0, words
"""
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{REPOSITORY}"},
        cwd=site,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Install packages for this process; their code is the module `added`."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code, name="other", **entries):
        sys.modules.pop("added", None)
        (tmp_path / "added.py").write_text(code, encoding="utf-8")
        install(tmp_path, name, "2.0", {f"parapipe.{key}": each for key, each in entries.items()})

    yield write
    sys.modules.pop("added", None)


@pytest.mark.parametrize(
    "case",
    [
        ("mappers", "lost:map", mapper, MappingError, "'mine' of the package 'other 2.0' cannot"),
        ("mappers", "added:number", mapper, MappingError, "'other 2.0' is no function"),
        ("mappers", "added:nothing", mapper, MappingError, "'other 2.0' cannot be called as map"),
        ("searches", "added:number", check_search, MappingError, "'other 2.0' is no class with"),
        ("searches", "added:Search", check_search, MappingError, "'other 2.0' has no `moment`"),
        ("strategies", "added:number", strategy, StrategyError, "'other 2.0' is no class"),
        ("strategies", "added:Search", strategy, StrategyError, "'other 2.0' has no schedule and"),
        ("export_targets", "added", TARGETS.load, ArgumentError, "'other 2.0' has neither a"),
        (
            "platforms",
            "added:number",
            find_platform,
            PlatformError,
            "'other 2.0' is no path of a file",
        ),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_the_package(add, case):
    group, entry, load, error, words = case
    code = "number = 3\ndef nothing(): ...\nclass Search:\n    def run(self): ...\n"
    add(code, **{group: {"mine": entry}})
    with pytest.raises(error, match=words) as caught:
        load("mine")
    assert "\n" not in str(caught.value)


def test_what_fails_while_it_is_imported_or_called_names_the_package(add):
    add("import sys; sys.exit(3)", mappers={"mine": "added:map"})
    with pytest.raises(MappingError, match=r"'other 2.0' cannot be imported .*SystemExit: 3"):
        mapper("mine")


def test_an_export_that_fails_names_the_package(add, branchy_folder):
    add("def export_plan(plan, destination): return 1 / 0", export_targets={"mine": "added"})
    with pytest.raises(
        ArgumentError, match=r"target 'mine' of the package 'other 2.0' failed: Zer"
    ):
        parapipe.export_plan(next((branchy_folder / "plans").iterdir()), "mine")


@pytest.mark.parametrize(
    ("registry", "group", "taken"),
    [
        (MAPPERS, "mappers", "fine"),
        (SEARCHES, "searches", "split"),
        (STRATEGIES, "strategies", "steal"),
        (TARGETS, "export_targets", "segments"),
        (platforms(), "platforms", "bst-a1000"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_name_has_one_owner(add, registry, group, taken):
    add("", **{group: {"shared": "added:x"}})
    add("", name="third", **{group: {"shared": "added:x"}})
    with pytest.raises(registry.error, match=r"'(other|third) 2.0' and '(other|third) 2.0' add a"):
        registry.load("shared")
    add("", name="fourth", **{group: {taken: "added:x"}})
    with pytest.raises(registry.error, match=f"'fourth 2.0' adds a .* '{taken}', as parapipe's"):
        registry.entry(taken)
    with pytest.raises(registry.error, match="uninstall"):
        registry.names()


def test_a_search_that_no_package_adds_is_refused(add):
    with pytest.raises(MappingError, match="'mine'; no package has one"):
        requested_searches(MapOptions(search=["mine"]))
    with pytest.raises(MappingError, match="'split' is parapipe's own; other options"):
        check_search("split")
    add("", searches={"minus": "added:x"})
    with pytest.raises(MappingError, match=r"those of installed packages: minus; did you mean"):
        check_search("minu")


WRONG = {
    "3": "yields a int that is no configuration",
    "replace(found, table=9)": "yields a Configuration that is no configuration",
    "moved(found, placements=found.mapping.placements[1:])": "does not have each operator once",
    "moved(found, placements=placed(processor=7))": "on a processor that there is not",
    "moved(found, period_s=1.0)": "is not of stages of whole operators",
    "moved(found, placements=placed(start_s=1.0, end_s=1.1))": "runs .* before .*, which it reads",
    "1 / 0": r"failed: ZeroDivisionError: .*added.py, line \d+",
}
YIELDS = """
from dataclasses import replace
from parapipe.mappings.configuration import Configuration
from parapipe.search.contract import Moment

class Mine:
    name, moment = "mine", Moment.MOMENT

    def run(self, problem, incumbents, deadline):
        from parapipe.search.stages.candidates import configure
        found = configure(incumbents[0], problem.graph, problem.tables)
        def placed(**change):
            first, *others = sorted(found.mapping.placements, key=lambda at: at.operator)
            return (replace(first, **change), *others)
        def moved(found, **change):
            return replace(found, mapping=replace(found.mapping, **change))
        yield WHAT
"""


def mapped_with(site, add, what, moment="LATER"):
    """Map with a search that yields an expression."""
    add(YIELDS.replace("WHAT", what).replace("MOMENT", moment), searches={"mine": "added:Mine"})
    return parapipe.map(
        site / "fork.onnx", "amlogic-a311d", search=["mine"], jobs=1, cache=False, draws=0,
        interleave="none", objectives="latency-throughput",
    )  # fmt: skip


@pytest.mark.parametrize(("what", "words"), WRONG.items())
def test_a_search_that_yields_what_is_wrong_is_named(site, add, what, words):
    with pytest.raises(MappingError, match=f"'mine' of the package 'other 2.0' .*{words}"):
        mapped_with(site, add, what)


@pytest.mark.parametrize("moment", nightly_from(1, ["STAGES", "LATER"]))
def test_figures_that_a_search_claims_do_not_count(site, add, moment):
    lie = "replace(found, evaluated=replace(found.evaluated, latency_s=1e-9), proven=True)"
    front = mapped_with(site, add, lie, moment)
    assert min(row.latency_s for row in front) > 1e-4


def test_several_models_take_no_search(site, add):
    add(YIELDS.replace("MOMENT", "LATER"), searches={"mine": "added:Mine"})
    with pytest.raises(ArgumentError, match="`search` cannot be asked for several models"):
        parapipe.map(
            {"a": site / "fork.onnx", "b": site / "fork.onnx"}, "amlogic-a311d",
            search=["mine"], rates={"a": 1.0, "b": 1.0},
        )  # fmt: skip


def test_the_version_and_the_code_of_its_package_belong_to_the_key_of_an_answer(add, monkeypatch):
    method_module = importlib.import_module("parapipe.problems.method")
    code = "def map(problem, *, time_limit_s, seed): ..."

    def key():
        method_module._list_versions.cache_clear()
        return answer_keys(Method("mine", 1.0, 0), "content", limits=["any"])

    found = set()
    add(code, mappers={"mine": "added:map"})
    found.add(key())
    assert found == {key()}
    add(f"{code}\n", name="rest")
    found.add(key())
    assert len(found) == 2
    monkeypatch.setattr(type(MAPPERS), "package", lambda *_: "'other 2.1'")
    found.add(key())
    assert len(found) == 3
    method_module._list_versions.cache_clear()


def test_answers_of_its_mapper_are_kept_for_later_runs(site):
    cached = []
    for name in ("first", "again"):
        options = ("--mapper", "in-order", "--cache", site / "cache")
        folder = mapped(site, name, "amlogic-a311d", *options)
        log = json.loads((folder / "solve_log.json").read_bytes())
        cached.append(sum(each["cached"] for each in log))
    assert cached[0] == 0
    assert cached[1]
