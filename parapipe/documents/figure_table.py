"""The table of figures: what configurations are shown with, compared by and bounded in.

Tables, `pick`, `diff`, `explain`, doubts, sweeps and pages read it: none has a list of its own. A
new figure is a field of `ConfigurationRow` and an entry here; if it may be asked for, also a field
of `Demands`, and its name a word of `Minimise` or `Compared`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args

from parapipe.digits import plain
from parapipe.files.checked_arguments import Must
from parapipe.search.option_types import MaxMemory, MaxSegments

if TYPE_CHECKING:
    from pydantic import BaseModel

Minimise = Literal["latency", "period", "throughput", "energy", "power", "memory"]
"""Figures of which a configuration may have the best."""
Compared = Literal["latency", "throughput", "energy", "memory"]
"""Figures in which `diff` compares the best of two fronts."""
UNITS: Mapping[str, tuple[str, float]] = {
    "ms": ("s", 1e3),
    "frames/s": ("1/s", 1.0),
    "tokens/s": ("1/s", 1.0),
    "mJ": ("J", 1e3),
    "W": ("W", 1.0),
    "MB": ("B", 1e-6),
    "frames/J": ("1/J", 1.0),
    "": ("", 1),
}
"""Units that are shown, with the one in SI, and what figures in that are multiplied by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEntry:
    """A figure of a configuration.

    Parameters
    ----------
    name
        What options, and columns of documents, call it.
    field
        Where a configuration has it.
    unit
        In which it is shown, of `UNITS`.
    per
        What follows the unit in a sentence.
    label
        What sentences and pictures call it, if not by its name.
    direction
        Which one is best.
    reciprocal
        Field of 1 / it, by which it is compared: then the least is best of what is to be great.
    drawn
        Whether draws of the costs say how sure it is.
    follows
        Fields of drawn figures that it follows from; it has no draws itself.
    rule
        Makes it of other fields: of numbers, and of the expressions that `explain` shows.
    demand
        Field of `Demands` that bounds it.
    column
        Title in the table of `map` and `pick`; none if it is not there.
    heading
        Title in tables of pages and notebooks.
    means
        What the page says of it; none if it is not there.
    """

    name: str
    field: str
    unit: str
    per: str = ""
    label: str = ""
    direction: Literal["least", "greatest"] | None = "least"
    reciprocal: str = ""
    drawn: bool = False
    follows: tuple[str, ...] = ()
    rule: Callable[[Mapping[str, Any]], Any] | None = None
    demand: str = ""
    column: str = ""
    heading: str = ""
    means: str = ""

    @property
    def words(self) -> str:
        """What sentences call it."""
        return self.label or self.name

    @property
    def compared(self) -> str:
        """Field that is to be least."""
        return self.reciprocal or self.field

    @property
    def scale(self) -> float:
        """What it is multiplied by to be shown."""
        return UNITS[self.unit][1]

    @property
    def si(self) -> str:
        """Unit in SI."""
        return UNITS[self.unit][0]

    @property
    def short_unit(self) -> str:
        """Unit in the head of a column."""
        return "fps" if self.unit == "frames/s" else self.unit

    @property
    def best(self) -> str:
        """Word for the best one."""
        return "most" if self.direction == "greatest" else "least"

    def value(self, row: Mapping[str, Any]) -> float:
        """Return it of a configuration as plain data, in SI; None if that does not state it."""
        if self.field in row or self.rule is None:
            return row.get(self.field)  # type: ignore[return-value] # as stated
        return self.rule(row)  # type: ignore[no-any-return]

    def text(self, value: float) -> str:
        """Write a value in SI with the unit, as in a sentence."""
        return f"{plain(value * self.scale)} {self.unit or self.words}{self.per}"


FIGURES = (
    FigureEntry(
        name="latency",
        field="latency_s",
        unit="ms",
        drawn=True,
        demand="max_latency_s",
        column="latency\nms",
        heading="latency, ms",
        means="One frame from its entry to its results.",
    ),
    FigureEntry(name="period", field="period_s", unit="ms"),
    FigureEntry(
        name="throughput",
        field="throughput_fps",
        unit="frames/s",
        direction="greatest",
        reciprocal="period_s",
        drawn=True,
        rule=lambda of: 1 / of["period_s"],
        demand="min_fps",
        column="\nfps",
        heading="fps",
        means="Frames per second: the reciprocal of the longest stage, or of the period in which "
        "frames take turns.",
    ),
    FigureEntry(
        name="sustained",
        field="sustained_fps",
        unit="frames/s",
        direction="greatest",
        reciprocal="sustained_period_s",
        follows=("throughput_fps",),
        rule=lambda of: 1 / of["sustained_period_s"],
        column="sust.\nfps",
        means="What a runtime reaches with one thread per processor and bounded queues.",
    ),
    FigureEntry(
        name="energy",
        field="energy_j",
        unit="mJ",
        per=" per frame",
        label="energy per frame",
        drawn=True,
        demand="max_energy_j",
        column="mJ per\nframe",
        heading="mJ per frame",
        means="Joules of the processors used.",
    ),
    FigureEntry(
        name="board energy",
        field="board_energy_j",
        unit="mJ",
        per=" per frame",
        label="with idle board",
        follows=("energy_j",),
        means="The same, plus what the board draws at rest.",
    ),
    FigureEntry(
        name="power",
        field="power_w",
        unit="W",
        follows=("energy_j", "throughput_fps"),
        rule=lambda of: of["energy_j"] / (of.get("arrival_s") or of["period_s"]),
        demand="max_power_w",
        heading="power, W",
        means="Energy per frame over the period, or over the time between frames as they arrive.",
    ),
    FigureEntry(
        name="efficiency",
        field="frames_per_joule",
        unit="frames/J",
        direction="greatest",
        reciprocal="energy_j",
        rule=lambda of: 1 / of["energy_j"],
        means="Frames per joule of the processors used.",
    ),
    FigureEntry(
        name="memory",
        field="peak_memory_bytes",
        unit="MB",
        label="peak memory",
        demand="max_memory_bytes",
        column="peak\nMB",
        heading="peak memory",
        means="The most memory at one moment: weights, tensors and queues of all frames on their "
        "way.",
    ),
    FigureEntry(
        name="segments",
        field="most_segments",
        unit="",
        label="segments on one processor",
        demand="max_segments",
        column="seg-\nments",
        heading="segments",
        means="The most operators' runs on one processor that are one file each when exported.",
    ),
    FigureEntry(
        name="load time",
        field="load_s",
        unit="ms",
        means="Loading all segments, one after the other, before the first frame: those of "
        "processors whose load time the platform states.",
    ),
    FigureEntry(
        name="tokens",
        field="tokens_per_second",
        unit="tokens/s",
        direction="greatest",
        reciprocal="token_s",
        demand="min_tokens_per_second",
        column="tokens\n/s",
        heading="tokens/s",
        means="Tokens a second of all sequences together: those of a step over the period.",
    ),
    FigureEntry(
        name="energy per token",
        field="energy_per_token_j",
        unit="mJ",
        per=" per token",
        demand="max_energy_per_token_j",
        column="mJ per\ntoken",
        means="Energy per frame over the tokens of a step.",
    ),
    FigureEntry(
        name="first token",
        field="first_token_s",
        unit="ms",
        label="time to first token",
        means="Latency of a step that reads a whole prompt, with loading and reading.",
    ),
    FigureEntry(
        name="input and output",
        field="input_output_s",
        unit="ms",
        rule=lambda of: of["input_s"] + of["output_s"],
        means="Loading a frame and reading the result; not part of the figures above.",
    ),
)
"""All figures, in the order in which they are shown."""

BY_FIELD = {each.field: each for each in FIGURES}
BY_NAME = {each.name: each for each in FIGURES}
BY_DEMAND = {each.demand: each for each in FIGURES if each.demand}
DRAWN = tuple(each for each in FIGURES if each.drawn)
"""Figures that have intervals."""
SHOWN_FIELDS = tuple(each.field for each in DRAWN)
SAMPLED_FIELDS = tuple(each.compared for each in DRAWN)
"""What is drawn of them; throughput stands for the period."""
COMPARED: Mapping[Compared, FigureEntry] = {name: BY_NAME[name] for name in get_args(Compared)}


def choice_figures() -> tuple[FigureEntry, ...]:
    """Return the figures of `Minimise`, without those of which another one is the reciprocal."""
    some = [BY_NAME[name] for name in get_args(Minimise)]
    reciprocals = {each.reciprocal for each in some}
    return tuple(each for each in some if each.field not in reciprocals)


def page_entries(figures: Sequence[FigureEntry] = FIGURES) -> list[dict[str, Any]]:
    """Return entries as plain data for pages."""
    own = [each.name for each in fields(FigureEntry) if each.name != "rule"]
    return [
        {**{name: getattr(each, name) for name in own}, "words": each.words, "scale": each.scale}
        for each in figures
    ]


def derive_figures(figures: Mapping[str, Any], record: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a record that rules make of other figures, which have fields too."""
    entries = [each for each in FIGURES if each.field in record.model_fields and each.rule]
    return {each.field: each.rule(figures) for each in entries if each.rule}


def _positive_number(of: str) -> Must:
    return Must(f"a positive number of {of}", gt=0, infinite=True)


Fps = Annotated[float, Must("a number of at least 0", ge=0)]
Latency = Annotated[float, _positive_number("seconds")]
Energy = Annotated[float, _positive_number("joules")]
Power = Annotated[float, _positive_number("watts")]
Confidence = Annotated[float, Must("a number above 0 and at most 1", gt=0, le=1)]


def _metadata(section: str, quantity: str = "", example: str = "") -> dict[str, str]:
    return {"section": section, "quantity": quantity, "example": example}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What is asked of a configuration.

    Metadata of a field: the section of help that lists it, and how a command line takes it.

    Parameters
    ----------
    min_fps
        Frames per second, at least.
    min_tokens_per_second
        Tokens per second, at least, of a language model: of all sequences together.
    max_latency_s
        Time of one frame through all stages, at most.
    max_energy_j
        Joules per frame, at most.
    max_energy_per_token_j
        Joules per token, at most, of a language model.
    max_power_w
        Watts at most: at full throughput, or at the rate that the front is for.
    max_memory_bytes
        Bytes at any moment, at most, of activations, queues and weights: in all memories together,
        or in memories of the platform by their names.
    max_segments
        Segments, at most, of every processor, or of processors by their names. The front must state
        them, as one with a limit of segments does.
    board
        Count the board's idle power in energy and power.
    sustained
        Take throughput, energy and power at the sustained rate (`sust. fps`), not at one frame per
        longest stage.
    confidence
        Take one that meets the demands in at least this share of the draws of the costs, as in 0.9
        for nine of ten, in place of one whose stated figures meet them. What is minimised is then
        the value that it keeps in that share of the draws.
    """

    min_fps: Fps = field(default=0.0, metadata=_metadata("common", "rate", "8"))
    min_tokens_per_second: Fps = field(default=0.0, metadata=_metadata("choice", "tokens", "8"))
    max_latency_s: Latency = field(default=inf, metadata=_metadata("common", "time", "150ms"))
    max_energy_j: Energy = field(default=inf, metadata=_metadata("common", "energy", "120mJ"))
    max_energy_per_token_j: Energy = field(
        default=inf, metadata=_metadata("choice", "energy", "40mJ")
    )
    max_power_w: Power = field(default=inf, metadata=_metadata("choice", "power", "4W"))
    max_memory_bytes: MaxMemory | None = field(default=None, metadata=_metadata("choice"))
    max_segments: MaxSegments | None = field(default=None, metadata=_metadata("choice"))
    board: bool = field(default=False, metadata=_metadata("choice"))
    sustained: bool = field(default=False, metadata=_metadata("choice"))
    confidence: Confidence | None = field(default=None, metadata=_metadata("choice"))


class DemandKeywords(TypedDict, total=False):
    """The fields of `Demands`, for editors and type checkers; a test keeps them equal."""

    min_fps: Fps
    min_tokens_per_second: Fps
    max_latency_s: Latency
    max_energy_j: Energy
    max_energy_per_token_j: Energy
    max_power_w: Power
    max_memory_bytes: MaxMemory | None
    max_segments: MaxSegments | None
    board: bool
    sustained: bool
    confidence: Confidence | None
