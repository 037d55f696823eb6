"""Slowdowns of co-runs out of measured ones: a row for each processor, busy set and class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import fsum, log, sqrt
from pathlib import Path
from typing import Any

from parapipe.cost.co_run import Running, SlowdownTable, draws_of, memory_share_of
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.mistakes import did_you_mean, listed
from parapipe.platform.co_run import Boundedness
from parapipe.platform.from_part import four_digits
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class CoRunSample:
    """What was measured of an operator, or a kernel, beside others that are busy.

    Parameters
    ----------
    name
        For people.
    busy
        Names of the other processors that were busy, ascending.
    operator_class
        Its own class; None if what it moves tells.
    busy_class
        Of what the others ran; None if they ran operators of both.
    moved_bytes
        What it reads and writes.
    alone_s
        Seconds alone.
    factor
        Time beside the others over the time alone.
    spread
        Standard deviation of the factor's logarithm over rounds.
    """

    name: str
    processor: str
    busy: tuple[str, ...]
    operator_class: Boundedness | None
    busy_class: Boundedness | None
    moved_bytes: float
    alone_s: float
    factor: float
    spread: float


@dataclass(frozen=True, slots=True)
class SlowdownFit:
    """A row of the table of slowdowns, and what it was made of.

    Parameters
    ----------
    factor
        Times of the samples beside the others, added up, over those alone; no less than 1, nor than
        with a part of what is busy.
    spread
        Standard deviation of the samples' logarithms about the factor's; of a single one, its own.
    samples
        How many there are.
    """

    processor: str
    busy: tuple[str, ...]
    operator_class: Boundedness | None
    busy_class: Boundedness | None
    factor: float
    spread: float
    samples: int

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def section(self) -> dict[str, Any]:
        """Return the row as a platform file has it."""
        classes = {"class": self.operator_class, "busy_class": self.busy_class}
        return {
            "processor": self.processor,
            "busy": list(self.busy),
            **{key: name for key, name in classes.items() if name},
            "factor": self.factor,
            "spread": self.spread,
        }


def read_co_run_samples(path: str | Path) -> tuple[CoRunSample, ...]:
    """Read what `measure.py` wrote, or a table with these columns.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    return read_table(Path(path), _CO_RUNS)


def co_run_sample(cells: Cells) -> CoRunSample:
    """Return the sample in a line of such a table."""
    own, busy = cells.text("processor"), tuple(sorted({*cells.text("busy").split()}))
    if own in busy:
        cells.mistakes.append(f"busy names '{own}' itself; list others only")
    return CoRunSample(
        name=cells.text("name", empty=True),
        processor=own,
        busy=busy,
        operator_class=_class_in(cells, "class"),
        busy_class=_class_in(cells, "busy_class"),
        moved_bytes=cells.number("moved_bytes"),
        alone_s=cells.number("alone_s", positive=True),
        factor=cells.number("factor", positive=True),
        spread=cells.optional("spread") or 0.0,
    )


def _class_in(cells: Cells, column: str) -> Boundedness | None:
    word = cells.one_of(column, ("compute", "memory", "")) if cells.cells.get(column) else ""
    return "compute" if word == "compute" else "memory" if word == "memory" else None


_CO_RUNS = TableKind(
    "table of co-runs",
    ("processor", "busy", "moved_bytes", "alone_s", "factor"),
    ("name", "class", "busy_class", "spread", "rounds"),
    co_run_sample,
    needed="co-run",
)

_Group = tuple[str, tuple[str, ...], Boundedness | None, Boundedness | None]


def fit_slowdowns(samples: Sequence[CoRunSample], platform: Platform) -> tuple[SlowdownFit, ...]:
    """Return the table of slowdowns, in order of appearance.

    Samples of the same processor, busy others and classes are one row. Whose class is not said, it
    follows from what it moves a second, as of `SlowdownTable`.

    Raises
    ------
    CostError
        If samples are of processors that the platform does not have.
    """
    names = {name for each in samples for name in (each.processor, *each.busy)}
    if unknown := sorted(names - {*platform.names}):
        raise CostError(
            f"co-runs are of processors that platform '{platform.name}' does not have: "
            f"{listed(unknown)}; it has {', '.join(platform.names)}"
            f"{did_you_mean(unknown[0], platform.names)}"
        )
    classes = SlowdownTable((), draws_of(platform), memory_share_of(platform))
    groups: dict[_Group, list[CoRunSample]] = {}
    for each in samples:
        running = Running(each.processor, each.moved_bytes, each.alone_s)
        own = each.operator_class or classes.boundedness(running)
        groups.setdefault((each.processor, each.busy, own, each.busy_class), []).append(each)
    factors = {group: max(_factor(members), 1.0) for group, members in groups.items()}
    return tuple(
        SlowdownFit(
            *group,
            factor=four_digits(max(factors[part] for part in _parts(group, factors))),
            spread=four_digits(_spread(members)),
            samples=len(members),
        )
        for group, members in groups.items()
    )


def _factor(members: Sequence[CoRunSample]) -> float:
    beside_s = fsum(each.alone_s * each.factor for each in members)
    return beside_s / fsum(each.alone_s for each in members)


def _spread(members: Sequence[CoRunSample]) -> float:
    if len(members) == 1:
        return members[0].spread
    middle = log(_factor(members))
    return sqrt(fsum((log(each.factor) - middle) ** 2 for each in members) / (len(members) - 1))


def _parts(group: _Group, every: Iterable[_Group]) -> Iterator[_Group]:
    """Yield the rows that hold wherever this one does: more that is busy makes none quicker."""
    processor, busy, own, beside = group
    for each in every:
        if each[0] != processor or not {*each[1]} <= {*busy}:
            continue
        if each[2] in (None, own) and each[3] in (None, beside):
            yield each
