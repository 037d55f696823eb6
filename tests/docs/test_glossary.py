"""The glossary and the code's public names agree."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import parapipe

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(parapipe.__file__).parent
TEXT = (REPOSITORY / "docs/glossary.md").read_text(encoding="utf-8")
NOUNS, GIVEN_UP = TEXT.split("Words that are no longer used")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([\w.]+)` \|$", NOUNS, re.MULTILINE)
OLD_WORDS = {
    word.split(" of ")[0]
    for row in re.findall(r"^\| ([^|]+) \| [^|]+ \|$", GIVEN_UP, re.MULTILINE)[1:]
    for word in row.split(", ")
}
# These are words of other things, too: of memory, of text, of numbers.
ELSEWHERE = {"region", "piece", "group", "span"}


def test_there_are_at_most_forty_nouns_each_with_one_meaning() -> None:
    words = [word for word, _, _ in ROWS]
    assert 20 <= len(words) <= 40
    assert len(set(words)) == len(words)
    assert NOUNS.count("\n| ") == len(words) + 1  # the head of the table


@pytest.mark.parametrize("path", [path for _, _, path in ROWS])
def test_what_the_glossary_names_is_in_the_code(path: str) -> None:
    module, _, name = path.rpartition(".")
    assert hasattr(importlib.import_module(f"parapipe.{module}"), name)


def test_every_public_noun_stands_in_the_glossary() -> None:
    named = {path.rpartition(".")[2] for _, _, path in ROWS}
    nouns = {name for name in parapipe.__all__ if name[0].isupper() and not name.endswith("Error")}
    assert nouns - named == set()


def identifiers(path: Path) -> set[str]:
    """All names that a module defines: functions, classes, arguments, variables, fields."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_words_that_were_given_up_are_in_no_name_of_the_code() -> None:
    words = {word.replace(" ", "_") for word in OLD_WORDS - ELSEWHERE}
    words |= {f"{word}s" for word in words}
    found = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in identifiers(path)
        if words & {name.lower().strip("_"), *name.lower().split("_")}
    }
    assert sorted(found) == []


DOCUMENTS = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
PLAIN = r"\b(alike|dear|dearer|lanes?|carried|carrier|torn|let in|mended|obituary|spelled out)\b"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_do_without_words_that_readers_stumbled_over(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "glossary.md":
        text = text.split("Words that are no longer used")[0]
    assert re.findall(PLAIN, text) == []
