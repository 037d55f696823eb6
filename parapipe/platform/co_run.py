"""What a platform file says of processors that work at the same time: slowdowns, heat, power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import inf, log
from typing import Annotated, Any, Literal

from pydantic import Field

from parapipe.files.mistakes import KeyPath, Mistake, did_you_mean
from parapipe.files.yaml_file import Strict
from parapipe.platform.consistency import EACH, is_number, value_at, values_at
from parapipe.platform.fields import Deviation, Many, Name, Section, Share
from parapipe.platform.sections import Factor

Boundedness = Literal["compute", "memory"]
MOST_ROWS = 1024
MEMORY_SHARE = 0.5
"""Share of what its processor draws at most, from which on an operator is memory-bound."""


class Slowdown(Strict):
    """How many times as long operators of a processor take while others are busy.

    Parameters
    ----------
    busy
        Names of the others.
    operator_class
        `class` in the file: of the operators that are slowed down; both classes if left out.
    busy_class
        Of what the others run; both classes if left out.
    factor
        Time beside them over the time alone.
    spread
        Standard deviation of the factor's natural logarithm; not known if left out.
    """

    processor: Name
    busy: Annotated[Many[Name], Field(min_length=1, max_length=31)]
    operator_class: Boundedness | None = Field(default=None, alias="class")
    busy_class: Boundedness | None = None
    factor: Factor
    spread: Deviation | None = None


class CoRun(Section):
    """The law by which processors slow each other down: a table, or the shared bandwidth.

    Parameters
    ----------
    slowdowns
        The table. An operator takes the largest factor that is stated for some of what is busy
        beside it; 1 if none is.
    memory_share
        An operator counts as memory-bound if the bytes that it moves a second, alone, are at least
        this share of what its processor draws at most; `MEMORY_SHARE` if left out.
    bandwidth
        `shared`: the memory serves processors in proportion to what each draws at most, and none
        more than it asks for.
    """

    slowdowns: Annotated[Many[Slowdown], Field(max_length=MOST_ROWS)] = ()
    memory_share: Share | None = None
    bandwidth: Literal["shared"] | None = None


class PowerBudget(Section):
    """What the chip may draw for ever.

    Parameters
    ----------
    sustained_w
        Watts that the processors together may draw on average; the board's idle power is not part
        of it.
    time_constant_s
        Of the chip's heat: beside a constant power P above the budget B, the limit is reached after
        −τ ln(1 − B/P) from cold. Not known if left out.
    """

    sustained_w: Annotated[float, Field(ge=1e-6, le=10_000, allow_inf_nan=False)]
    time_constant_s: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None

    def lasts_s(self, power_w: float) -> float | None:
        """Return for how long the chip, cold before, keeps a power.

        Infinite within the budget; None if the time constant is not known.
        """
        if power_w <= self.sustained_w:
            return inf
        if self.time_constant_s is None:
            return None
        return -self.time_constant_s * log(1 - self.sustained_w / power_w)


def co_run_contradictions(raw: object) -> Iterator[Mistake]:
    """Yield what a platform file's co-run law and sustained clocks contradict.

    It takes the raw values, as `contradictions` does.
    """
    yield from _wrong_sustained_clocks(raw)
    if not isinstance(value_at(raw, "co_run"), Mapping):
        return
    yield from _wrong_law(raw)
    names = [name for _, name in values_at(raw, "processors", EACH, "name") if _is_name(name)]
    rows = [*values_at(raw, "co_run", "slowdowns", EACH)]
    for path, row in rows:
        yield from _wrong_names(row, names, path)
    if len(rows) <= MOST_ROWS:
        yield from _wrong_factors(rows)


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _wrong_sustained_clocks(raw: object) -> Iterator[Mistake]:
    for path, clock in values_at(raw, "processors", EACH, "clock"):
        sustained = value_at(clock, "sustained_frequency_hz")
        points = [hz for _, hz in values_at(clock, "points", EACH, "frequency_hz")]
        if is_number(sustained) and points and sustained not in points:
            text = f"{sustained} Hz is not among the points; add it or choose one of them"
            yield Mistake((*path, "sustained_frequency_hz"), text)


def _wrong_law(raw: object) -> Iterator[Mistake]:
    section = value_at(raw, "co_run")
    table, shared = bool(section.get("slowdowns")), section.get("bandwidth") == "shared"
    if table and shared:
        text = "there is one law at a time; delete this key or slowdowns"
        yield Mistake(("co_run", "bandwidth"), text)
    elif not table and section.get("bandwidth") is None:
        yield Mistake(("co_run",), "states no law; add slowdowns, or bandwidth: shared")
    if shared and section.get("memory_share") is not None:
        text = "is only for slowdowns; delete this key"
        yield Mistake(("co_run", "memory_share"), text)
    if shared and value_at(raw, "memory", "lower_bound") is True:
        text = (
            "the law needs the bandwidth of the memory, and lower_bound says that it may give "
            "more; measure what all processors move together, or state slowdowns"
        )
        yield Mistake(("co_run", "bandwidth"), text)
    if value_at(raw, "evaluation", "contention"):
        text = "there is one law at a time; delete this key or co_run"
        yield Mistake(("evaluation", "contention"), text)


def _wrong_names(row: object, names: Sequence[str], path: KeyPath) -> Iterator[Mistake]:
    own = value_at(row, "processor")
    seen: set[str] = set()
    for where, name in (
        *values_at(row, "processor", path=path),
        *values_at(row, "busy", EACH, path=path),
    ):
        if not _is_name(name):
            continue
        if name not in names:
            text = f"no processor is named '{name}'; known: {', '.join(names) or 'none'}"
            yield Mistake(where, text + did_you_mean(name, names))
        elif where[-1] != "processor" and name == own:
            yield Mistake(where, f"'{name}' is the processor itself; list others only")
        elif where[-1] != "processor" and name in seen:
            yield Mistake(where, f"'{name}' is listed twice; list it once")
        seen |= set() if where[-1] == "processor" else {name}


def _wrong_factors(rows: Sequence[tuple[KeyPath, Any]]) -> Iterator[Mistake]:
    """Yield rows that repeat another one, or fall below one of which they are a case."""
    cases = [
        (path, row.get("processor"), frozenset(busy), row.get("class"), row.get("busy_class"), row)
        for path, row in rows
        if isinstance(row, Mapping)
        and isinstance(busy := row.get("busy"), list | tuple)
        and all(map(_is_name, (*busy, row.get("processor"))))
        and all(isinstance(row.get(key), str | None) for key in ("class", "busy_class"))
    ]
    first: dict[object, KeyPath] = {}
    for path, *key, _ in cases:
        if first.setdefault(tuple(key), path) != path:
            yield Mistake(path, f"slowdowns[{first[tuple(key)][-1]}] says it already; delete one")
    for less, more in permutations(cases, 2):
        _, own, busy, kind, beside, row = less
        path, other_own, other_busy, other_kind, other_beside, other_row = more
        wider = kind in (None, other_kind) and beside in (None, other_beside)
        same = less[1:-1] == more[1:-1]
        if own != other_own or not busy <= other_busy or not wider or same:
            continue
        factor, other = (each.get("factor", inf) for each in (row, other_row))
        if is_number(factor) and is_number(other) and other < factor < inf:
            text = (
                f"{other:g} is less than the {factor:g} that slowdowns[{less[0][-1]}] says of "
                "part of what is busy; correct one of them"
            )
            yield Mistake((*path, "factor"), text)
