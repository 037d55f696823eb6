"""Makes the documents of the whole repository one site: those outside docs/ stand in it too.

A hook of MkDocs. README.md is the site's first page, others keep their place below `repository/`;
links between all of them work on the site as they do in the repository. What the commands say of
themselves stands below commands.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from parapipe.cli.command_line import SETTINGS, cli

ROOT = Path(__file__).parents[1]
FIRST = "README.md"
COMMANDS = "commands.md"
OTHERS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "platforms/SOURCES.md",
    "profiles/SOURCES.md",
    "runtimes/native/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("benchmarks/results/*.md")),
)
LINK = re.compile(r"(\[[^\]]*\])\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents outside docs/."""
    for path in (FIRST, *OTHERS):
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, _place(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where the documents stand on the site; other files are named only."""
    here = page.file.src_uri
    source = _source(here)
    if here == COMMANDS:
        markdown += "".join(_helps(cli, click.Context(cli, info_name="parapipe", **SETTINGS)))

    def moved(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", target):
            return match[0]
        place = _place(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        if files.get_file_from_path(place) is None:
            return f"`{text[1:-1].strip('`')}`"
        return f"{text}({posixpath.relpath(place, posixpath.dirname(here) or '.')}{anchor})"

    return LINK.sub(moved, markdown)


def _helps(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield what each command of a group prints for --help, those of groups in it after theirs."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        of_command = click.Context(command, parent=context, info_name=name)
        yield f"\n## `{of_command.command_path}`\n\n```text\n{command.get_help(of_command)}\n```\n"
        if isinstance(command, click.Group):
            yield from _helps(command, of_command)


def _place(path: str) -> str:
    """Return where a file of the repository stands on the site."""
    if path == FIRST:
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def _source(place: str) -> str:
    """Return the file of the repository that stands there on the site."""
    if place == "index.md":
        return FIRST
    outside = place.startswith("repository/")
    return place.removeprefix("repository/") if outside else f"docs/{place}"
