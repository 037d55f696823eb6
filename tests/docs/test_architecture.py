"""The house rules that a program can check."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import parapipe

PACKAGE = Path(parapipe.__file__).parent
REPOSITORY = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("ortools", "pulp", "pandas", "matplotlib", "onnx", "numpy", "networkx", "pydantic", "rich")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_is_longer_than_400_lines(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= 400


def test_no_room_is_larger_than_8000_lines_or_45_files() -> None:
    rooms = [path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    for room in rooms:
        modules = [path for path in room.rglob("*.py") if path.name != "__init__.py"]
        lines = sum(len(module.read_text().splitlines()) for module in modules)
        assert (len(modules) <= 45, lines <= 8000) == (True, True), room.name


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_named_in_snake_case_after_a_noun_or_verb(module: Path) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*|__init__", module.stem)
    assert not re.search(r"manager|helper|util|misc|common", module.stem)


def test_every_module_opens_with_a_docstring_unless_it_is_an_empty_init() -> None:
    bare = [
        str(module.relative_to(PACKAGE))
        for module in MODULES
        if (text := module.read_text()).strip() and ast.get_docstring(ast.parse(text)) is None
    ]
    assert bare == []


def test_the_init_of_a_subpackage_holds_at_most_a_docstring() -> None:
    inits = PACKAGE.glob("*/**/__init__.py")
    busy = [
        str(path.relative_to(PACKAGE))
        for path in inits
        if any(not isinstance(node, ast.Expr) for node in ast.parse(path.read_text()).body)
    ]
    assert busy == []


def test_one_module_alone_runs_cp_sat() -> None:
    assert [
        str(module.relative_to(PACKAGE)) for module in MODULES if "CpSolver()" in module.read_text()
    ] == ["solvers/cp_sat.py"]


def test_every_package_and_root_module_stands_on_a_floor() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (floors,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    on_floors = [name for floor in floors for name in floor.split(" | ")]
    there = [f"parapipe.{info.name}" for info in pkgutil.iter_modules(parapipe.__path__)]
    assert sorted(on_floors) == sorted(there)
    assert all("ignore_imports" not in contract for contract in contracts)


def test_every_module_can_be_imported_by_itself() -> None:
    for info in pkgutil.walk_packages(parapipe.__path__, "parapipe."):
        importlib.import_module(info.name)


def test_test_files_have_unique_names() -> None:
    names = [path.name for path in (REPOSITORY / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


def test_every_error_a_user_can_meet_derives_from_parapipe_error() -> None:
    errors = importlib.import_module("parapipe.errors")
    found = [e for e in vars(errors).values() if getattr(e, "__module__", "") == errors.__name__]
    assert found
    assert all(issubclass(error, errors.ParapipeError) for error in found)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], *([name, "--help"] for name in ("map", "inspect", "platforms"))],
    ids=" ".join,
)
def test_help_imports_no_heavy_package(arguments: list[str]) -> None:
    script = (
        "import sys; from parapipe.cli.command_line import run; code = run(sys.argv[1:]); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert set(HEAVY).isdisjoint(done.stderr.split())
    assert done.stdout


def test_importing_parapipe_imports_no_heavy_package() -> None:
    script = "import sys, parapipe; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert set(HEAVY).isdisjoint(name.partition(".")[0] for name in done.stdout.split())
