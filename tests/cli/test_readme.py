"""README.md shows what happens: its commands, and Python of all documents, are run and compared."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("shared_cache")
README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def python_of_all_documents() -> list[Any]:
    """Return the Python blocks of README.md and docs, the longer ones of docs only nightly."""
    found = []
    for path in (README, *sorted((README.parent / "docs").glob("*.md"))):
        for block in blocks("python", path.read_text(encoding="utf-8")):
            rare = [pytest.mark.nightly] * (path != README and "import parapipe\n" in block)
            found.append(pytest.param(block, id=block.splitlines()[0], marks=rare))
    return found


def steps(block: str) -> list[tuple[str, str]]:
    """Split a console block into commands (lines with `$ `) and what they print."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def matches(shown: str, printed: str) -> bool:
    """Tell whether the text is the one shown, where `...` stands for anything.

    A table's rule may be of any length: versions of rich differ by a column.
    """
    shown, printed = (re.sub("─+", "─", text) for text in (shown, printed))
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


def unhurried(command: str) -> str:
    """Give a search so much time that it ends by itself, however busy the machine is."""
    return command.replace("parapipe map ", "parapipe map --time-limit 3600 ")


def environment() -> dict[str, str]:
    """Return an environment in which the parapipe under test is found first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MPLBACKEND": "Agg", "PYTHONPATH": str(README.parent)}


def check_console(text: str, folder: Path) -> None:
    """Run the commands of a page in a folder, and compare what they print."""
    for block in blocks("console", text):
        for command, shown in steps(block):
            done = subprocess.run(
                command, shell=True, cwd=folder, env=environment(), text=True, check=False,
                capture_output=True, encoding="utf-8",
            )  # fmt: skip
            assert done.returncode == 0, f"$ {command}\n{done.stderr}"
            assert matches(shown, done.stdout), f"$ {command}\n{done.stdout}\n{done.stderr}"


def test_the_readme_shows_commands_and_code() -> None:
    assert blocks("console")
    assert blocks("python")


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.splitlines()[0])
def test_a_command_in_the_readme_prints_what_stands_there(block: str, tmp_path: Path) -> None:
    for command, shown in steps(block):
        done = subprocess.run(
            unhurried(command), shell=True, cwd=tmp_path, env=environment(), text=True,
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        printed = done.stdout + (done.stderr if done.returncode else "")
        assert matches(shown, printed), f"$ {command}\n{printed}\n{done.stderr}"


@pytest.mark.parametrize("block", python_of_all_documents())
def test_python_in_a_document_prints_what_its_comments_say(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, env=environment(), text=True,
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [comment for line in block.splitlines() if (comment := line.partition("  # ")[2])]
    assert not said or matches("\n".join(said), done.stdout), done.stdout
