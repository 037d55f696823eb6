"""What a runtime's tool tells of a model's layers: one form for the files of all tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from parapipe.errors import ProfilingError
from parapipe.files.shipped import require_regular


@dataclass(frozen=True, slots=True)
class Layer:
    """What a runtime ran at one go.

    Parameters
    ----------
    name
        As the tool calls it.
    time_s
        Seconds of one inference.
    type
        In the tool's words; empty where it tells none.
    place
        Where it ran, in the tool's words; empty where it tells none.
    shapes
        Of what it writes, in any layout; empty where the tool tells none.
    kernel
        Extents of its window; empty where the tool tells none.
    inserted
        Whether it only converts a layout or a type: no operator of the model stands for it.
    whole
        Whether it is the whole model.
    """

    name: str
    time_s: float
    type: str = ""
    place: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    kernel: tuple[int, ...] = ()
    inserted: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """The layers of a file, in the order in which they ran.

    Parameters
    ----------
    format
        Name of the format, which a profile's file is called by.
    title
        What people call it.
    total_s
        Seconds that the tool tells for one inference of the whole; None where it tells none.
    """

    format: str
    title: str
    layers: tuple[Layer, ...]
    total_s: float | None = None


class ToolFile:
    """A file of a tool: its text, and the document in it if it is JSON."""

    def __init__(self, path: Path) -> None:
        try:
            require_regular(path)
            self.text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            self.text = ""  # of no format here
        except OSError as error:
            reason = error.strerror or str(error)
            raise ProfilingError(f"profile '{path}' cannot be read: {reason}") from error
        self.path = path

    @cached_property
    def document(self) -> Any:  # noqa: ANN401 - anything that JSON can hold
        """The JSON document; None if there is none. A trace may lack its last bracket."""
        text = self.text.strip()
        if text[:1] not in ("[", "{"):
            return None
        for whole in (text, text.rstrip(",") + "]"):
            try:
                return json.loads(whole)
            except ValueError:
                continue
        return None

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines of the text, without what colours them."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.text).splitlines()

    def number(self, text: object, what: str) -> float:
        """Return a number that stands in the file, not negative.

        Raises
        ------
        ProfilingError
            If it is none.
        """
        try:
            value = float(str(text))
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise ProfilingError(
                f"profile '{self.path}': {what} is '{str(text)[:60]}' but must be a time that is "
                "not negative; is the file damaged?"
            )
        return value


def shape_in(text: str) -> tuple[int, ...]:
    """Return the extents in a text such as `1x64x56x56` or `[1, 64, 56, 56]`."""
    return tuple(int(each) for each in re.findall(r"\d+", text))
