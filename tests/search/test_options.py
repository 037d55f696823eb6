"""What an option of `map` may do is said at its field, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import parapipe
from parapipe.files.checked_arguments import Traits
from parapipe.problems.method import Method
from parapipe.search.options import (
    MapOptions,
    flag,
    idle_options,
    option_hints,
    option_names,
    option_traits,
)

SOURCE = Path(parapipe.__file__).parent
OPTIONS = SOURCE / "search" / "options.py"
NAMES = frozenset(option_hints())


def lists_of_options(source: str) -> Iterator[str]:
    """Yield the lists, sets and tables in a module that consist of options of `map`.

    A table of variables passes arguments on.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = node.elts
        elif isinstance(node, ast.Dict) and not all(isinstance(v, ast.Name) for v in node.values):
            items = [each for each in node.keys if each is not None]
        else:
            continue
        words = [each.value for each in items if isinstance(each, ast.Constant)]
        if len(words) == len(items) > 1 and NAMES.issuperset(words):
            yield ast.unparse(node)


def test_a_list_of_options_is_seen() -> None:
    assert [*lists_of_options("left_out = ('jobs', 'cache')")] == ["('jobs', 'cache')"]
    assert [*lists_of_options("texts = {'dims': 'x', 'shapes': 'y'}")]
    assert not [*lists_of_options("kinds = ('jobs', 'time')")]
    assert not [*lists_of_options("read(**{'dims': dims, 'rules': rules})")]


def test_no_module_lists_options_beside_their_fields() -> None:
    others = set(SOURCE.rglob("*.py")) - {OPTIONS}
    assert others < set(SOURCE.rglob("*.py"))
    found = {path.name: [*lists_of_options(path.read_text(encoding="utf-8"))] for path in others}
    assert {name: lists for name, lists in found.items() if lists} == {}


def test_the_traits_of_an_option_are_those_there_are() -> None:
    words = {name: get_args(hint) for name, hint in get_type_hints(Traits).items()}
    for name, traits in option_traits().items():
        assert traits.section in words["section"], name
        assert traits.several in words["several"], name


def test_what_decides_how_a_subgraph_is_solved_is_in_the_key_of_the_cache() -> None:
    solves = option_names(lambda option: option.solves)
    assert set(solves) == set(get_type_hints(Method))


def test_an_option_that_may_be_repeated_stands_for_one_of_several() -> None:
    assert flag("profiles") == "--profile"  # a list
    assert flag("rates") == "--rate"  # a table
    assert flag("max_memory_bytes") == "--max-memory"
    assert flag("draws") == "--draws"
    assert flag("max_segments") == "--max-segments"  # it bounds how many there are


def test_options_that_change_results_are_told_if_they_are_not_at_their_defaults() -> None:
    options = MapOptions(seed=3, jobs=2, cache=False, dims={}, profiles=[], draws=0)
    assert options.changed() == {"seed": 3, "draws": 0}


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        ({}, []),
        ({"dvfs_points": 2, "scenarios": 3}, []),
        ({"objectives": "latency-throughput"}, ["energy_resolution"]),
        ({"deterministic": True, "budget_s": 1.0}, ["budget_s"]),
        ({"deterministic": True}, []),
    ],
)
def test_an_option_says_itself_beside_which_others_it_has_no_effect(given, idle) -> None:
    alone = {"dvfs_points", "scenarios", "recompute"}
    found = idle_options(MapOptions(**given).to_dict())
    assert [name for name in found if name not in alone] == idle
    both = MapOptions(dvfs=True, robust=0.9, max_memory_bytes=1e9)
    assert idle_options(both.to_dict()) == {}
