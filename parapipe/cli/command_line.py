"""The command line: runs a command and turns every ending into a line and an exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from parapipe.cli.output import abandon_stdout
from parapipe.errors import ParapipeError
from parapipe.version import __version__

COMMANDS = (
    "compare", "compilers", "diff", "evaluate", "export", "explain", "fit", "inspect", "map",
    "pick", "platforms", "profile", "report", "run", "simulate", "split", "sweep", "verify", "zoo",
)  # fmt: skip


class LazyGroup(click.Group):
    """The commands of `COMMANDS`: `parapipe.cli.NAME` holds the click command `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"parapipe.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


COULD_NOT = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells count it
MOST_DETAILS = 20
# Characters: more has only what names or holds something that is damaged.
LONGEST_LINE, LONGEST_DETAIL = 2000, 400


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="parapipe", message="%(prog)s %(version)s")
def cli() -> None:
    """Map neural networks onto the unequal processors of a system-on-chip, exactly.

    MODEL is the path of an ONNX file or zoo:NAME; a platform is the path of a YAML file or the
    name of a shipped one.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; no exception but a debugged one gets out."""
    for stream in (sys.stdout, sys.stderr):  # one that cannot show │ or a name must not end it
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(args=arguments, prog_name="parapipe", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return COULD_NOT
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _say("interrupted", INTERRUPTED)
    except click.ClickException as error:
        return _report_usage(error)
    except ParapipeError as error:
        return _report_error(error)
    except OSError as error:
        abandon_stdout()
        return _say(f"{error}; check that the place exists and has room", COULD_NOT)
    except MemoryError:
        return _say("not enough memory for this; try a smaller model or fewer --jobs", COULD_NOT)
    except Exception as error:  # noqa: BLE001 - no traceback may reach a user
        return _report_unexpected(error)
    return code if isinstance(code, int) else 0


def _report_usage(error: click.ClickException) -> int:
    error.show()
    if isinstance(error, click.UsageError) and error.ctx is None:
        click.echo("Try 'parapipe --help' for help.", err=True)
    return error.exit_code


def _report_error(error: ParapipeError) -> int:
    if debugging():
        raise error
    from parapipe.api.checked import flag

    _say(re.sub("`([a-z0-9_]+)`", lambda word: flag(word[1]), str(error)), COULD_NOT)
    details = getattr(error, "mistakes", ()) or getattr(error, "violations", ())
    for detail in details[:MOST_DETAILS]:
        click.echo(f"  {_one_line(detail, LONGEST_DETAIL)}", err=True)
    if len(details) > MOST_DETAILS:
        click.echo(f"  and {len(details) - MOST_DETAILS} more", err=True)
    return COULD_NOT


def _report_unexpected(error: Exception) -> int:
    if debugging():
        raise error
    return _say(
        f"this is a mistake in parapipe ({type(error).__name__}: {error}); please report it with "
        "the command you ran and what PARAPIPE_DEBUG=1 shows",
        COULD_NOT,
    )


def _say(message: str, code: int) -> int:
    click.echo(f"parapipe: {_one_line(message)}", err=True)
    return code


def _one_line(message: str, longest: int = LONGEST_LINE) -> str:
    line = " ".join(message.split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def debugging() -> bool:
    """Tell whether tracebacks and warnings shall be shown."""
    return os.environ.get("PARAPIPE_DEBUG", "") not in ("", "0")
