"""docs/platforms.md: what it quotes stands in the shipped files, what it shows happens."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import BaseModel

from parapipe.platform.fields import OPERATOR_CLASSES
from parapipe.platform.load import find_platform, read_platform
from parapipe.platform.platform import Platform

pytestmark = pytest.mark.usefixtures("shared_cache")
PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUOTES = re.findall(r"<!-- (\S+)\.yaml -->\n```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
(WHOLE,) = re.findall(r"^```yaml\n(schema.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def matches(shown, printed):
    """Tell whether the text is the one shown, where `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


def run(command, folder):
    (folder / "my-soc.yaml").write_text(WHOLE, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    root = str(PAGE.parents[1])
    return subprocess.run(
        command, shell=isinstance(command, str), cwd=folder, text=True, capture_output=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": root}, encoding="utf-8", check=False,
    )  # fmt: skip


def test_every_yaml_on_the_page_is_the_whole_file_or_quoted_from_a_named_one():
    assert len(blocks("yaml")) == len(QUOTES) + 1
    assert {name for name, _ in QUOTES} == {"amlogic-a311d", "bst-a1000"}


@pytest.mark.parametrize(("name", "quote"), QUOTES)
def test_a_quotation_stands_in_its_file_line_for_line(name, quote):
    lines = find_platform(name).read_text(encoding="utf-8").splitlines(keepends=True)
    size = len(quote.splitlines())
    windows = {dedent("".join(lines[i : i + size])) for i in range(len(lines))}
    assert quote in windows


def test_the_whole_file_is_a_platform():
    assert read_platform(WHOLE, "my-soc.yaml").names == ("cpu", "npu")


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.splitlines()[0])
def test_a_command_prints_what_stands_there(block, tmp_path):
    before, *steps = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert before == ""
    for command, shown in zip(steps[::2], steps[1::2], strict=True):
        done = run(command, tmp_path)
        printed = done.stdout + (done.stderr if done.returncode else "")
        assert matches(shown, printed), f"$ {command}\n{printed}\n{done.stderr}"


def test_python_prints_what_stands_below_it(tmp_path):
    (code,), (shown,) = blocks("python"), blocks("text")
    done = run([sys.executable, "-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def models_in(annotation):
    """Return the pydantic models that an annotation names, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*(models_in(part) for part in getattr(annotation, "__args__", ())))


def keys_below(model):
    for name, field in model.model_fields.items():
        yield field.alias or name
        for inner in models_in(field.annotation):
            yield from keys_below(inner)


def test_the_page_explains_every_key_of_the_format():
    explained = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`\n]+)`", TEXT))))
    assert set(keys_below(Platform)) <= explained


def test_the_page_names_every_class_of_operators():
    (sentence,) = re.findall(r"The classes are (.*?)\.\n", TEXT, re.DOTALL)
    named = re.sub(r"\(.*?\)", "", sentence.replace("\n", " ")).replace(" and ", ", ")
    assert [name.strip() for name in named.split(",")] == list(OPERATOR_CLASSES)
