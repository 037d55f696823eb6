"""What the documents point at is there."""

import re
from pathlib import Path

import pytest

from docs import rooms

REPOSITORY = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "platforms/*.md", "profiles/*.md", "runtimes/**/*.md")
DOCUMENTS = sorted(path for pattern in PATTERNS for path in REPOSITORY.glob(pattern))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_relative_link_of_a_document_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert broken == []


def test_make_test_says_how_long_it_takes_and_each_nightly_file_has_its_reason() -> None:
    recipe = (REPOSITORY / "Makefile").read_text(encoding="utf-8").partition("\ntest: ")[2]
    assert "at most 10 minutes on two idle cores" in recipe.splitlines()[1]
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition("| why nightly | in |")[2].partition("\n\n")[0]
    mark = re.compile(r"mark\.nightly|\bnightly(_from|_repeats)?\(")
    tests = (REPOSITORY / "tests").rglob("test_*.py")
    nightly = {path.stem for path in tests if mark.search(path.read_text(encoding="utf-8"))}
    assert {*re.findall(r"`(test_\w+)`", rows)} == nightly - {Path(__file__).stem}


def test_every_command_stands_in_the_readme() -> None:
    from parapipe.cli.command_line import COMMANDS

    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert [command for command in COMMANDS if f"`parapipe {command} " not in readme] == []


def test_every_target_of_an_export_stands_where_users_look() -> None:
    import parapipe
    from parapipe.cli.export import command

    texts = {
        name: (REPOSITORY / name).read_text("utf-8") for name in ("README.md", "docs/export.md")
    }
    texts["export --help"] = command.help or ""
    missing = [
        f"{place}: {target}"
        for target in parapipe.export_targets()
        for place, text in texts.items()
        if target not in text
    ]
    assert missing == []


def test_the_tour_names_functions_that_are_there_in_at_most_twelve_stops() -> None:
    text = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    stops = re.findall(r"^\| \d+ \| `([\w/]+\.py)`: `(\w+)` \|", text, re.MULTILINE)
    assert 8 <= len(stops) <= 12
    for path, function in stops:
        assert re.search(rf"^def {function}\(", (REPOSITORY / path).read_text(), re.MULTILINE)


def test_the_documents_name_modules_that_are_there() -> None:
    folders = [REPOSITORY, REPOSITORY / "parapipe", *(REPOSITORY / "parapipe").glob("*/")]
    missing = [
        f"{document}: {path}"
        for document in ("CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md")
        for path in re.findall(r"`([\w/]+\.py)`", (REPOSITORY / document).read_text("utf-8"))
        if not any((folder / path).is_file() for folder in folders)
    ]
    assert missing == []


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    path = REPOSITORY / "docs/images/rooms.svg"
    assert path.read_text(encoding="utf-8") == rooms.picture()
