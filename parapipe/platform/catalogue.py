"""The platforms of this package and of others, and the catalogue of public figures of parts.

The catalogue has cores, GPUs, NPUs, memories, chips, and what holds for a kind. It is data:
`platforms/catalogue/*.yaml`, each section with its source, and a file in short form for each chip
in `platforms/catalogue/chips`. `expand.py` makes platforms of it. All is nominal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from parapipe.errors import PlatformError
from parapipe.files.plug_ins import Registry
from parapipe.files.shipped import data_folder
from parapipe.files.yaml_file import (
    FileKind,
    Strict,
    WholeFile,
    parse_as,
    parse_yaml,
    read_yaml_text,
)
from parapipe.platform.fields import (
    BytesPerSecond,
    DataType,
    Hertz,
    Many,
    Name,
    Section,
    Share,
    Shares,
    Text,
    Travel,
    Volts,
    WattsPerV2Hz,
)
from parapipe.platform.platform import Board, Source
from parapipe.platform.sections import (
    ClassRates,
    Compiled,
    CompilerTarget,
    Launch,
    Memory,
    Scaling,
)
from parapipe.platform.segments import Segments
from parapipe.platform.support import Support

KIND = FileKind("catalogue file", PlatformError, "install parapipe again")
Rate = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Kind = Literal["cpu", "gpu", "npu", "dsp"]
KINDS: tuple[str, ...] = get_args(Kind)


class MacsPerCycle(Section):
    """Multiply-accumulates that one unit does in a cycle at most, by data type."""

    macs_per_cycle: dict[DataType, Rate]


class Achieved(Section):
    """Share of the peak that whole networks were seen to reach in their convolutions."""

    share: Annotated[float, Field(gt=0, le=1)]


class TopClock(Section):
    """The highest operating point, where a chip does not state its own."""

    frequency_hz: Hertz
    voltage_v: Volts


class UnitPower(Section):
    """α of equation (8) of Para-Pipe, of one unit."""

    alpha_w_per_v2_hz: WattsPerV2Hz


class Part(Strict):
    """A core, a GPU, an NPU or a DSP.

    Parameters
    ----------
    units
        How many units a processor has if the platform does not say: shader cores of a GPU. The
        units of a CPU are its cores.
    backend
        The library that runs operators on it.
    compiler
        The compiler of its vendor; None if parapipe runs none.
    compiled
        How its cycles become seconds; None if that is not known.
    operators
        Entry of `operators` that says what it runs; everything in its data types if left out.
    achieved
        In place of its kind's.
    rates
        Rates of operator classes over those that follow from `peak` and the memory.
    memory
        Bytes a second that one unit was seen to move at most.
    segments
        How many segments it may have, and what each takes.
    """

    kind: Kind
    description: Text
    backend: Name
    compiler: CompilerTarget | None = None
    compiled: Compiled | None = None
    units: Annotated[int, Field(ge=1, le=1000)] = 1
    operators: Name | None = None
    peak: MacsPerCycle
    achieved: Achieved | None = None
    rates: ClassRates | None = None
    clock: TopClock
    memory: Memory | None = None
    segments: Segments | None = None
    power: UnitPower


class MemoryPart(Section):
    """A memory's data rate, of which `achieved` says how much remains."""

    description: Text
    bandwidth_bytes_per_s: BytesPerSecond


class Derived(Strict):
    """The rate of a data type, as a share of that of another one."""

    of: DataType
    share: Rate


class DerivedTypes(Section):
    """Data types that a kind computes in beside those that its parts state."""

    types: dict[DataType, Derived]


class KindPower(Section):
    """How the power of a unit becomes that of a processor.

    Parameters
    ----------
    static_share
        Static power, as a share of the full dynamic one at the top clock.
    """

    static_share: Share
    utilisation: Shares


class Frame(Section, Travel):
    """Time to load a frame, and to read the result."""


class KindDefaults(Strict):
    """What holds for all processors of a kind."""

    data_types: DerivedTypes
    achieved: Achieved
    launch: Launch
    scaling: Scaling
    power: KindPower
    frame: Frame


class KindLink(Section, Travel):
    """The link between two processors of these kinds, in both directions."""

    between: Annotated[Many[Kind], Field(min_length=2, max_length=2)]


class CatalogueFile(WholeFile):
    """One of the files; together they are the catalogue."""

    format: Literal["parapipe/catalogue/1"] = Field(alias="schema")
    parts: dict[Name, Part] = Field(default_factory=dict)
    memories: dict[Name, MemoryPart] = Field(default_factory=dict)
    kinds: dict[Kind, KindDefaults] = Field(default_factory=dict)
    links: Many[KindLink] = ()
    achieved: Achieved | None = None
    board: Board | None = None
    operators: dict[Name, Support] = Field(default_factory=dict)
    sources: dict[Name, Source] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All files of the catalogue together.

    Parameters
    ----------
    memory_share
        Share of a memory's data rate that remains after refresh and changes of row and direction.
    chips
        Platforms in short form, as plain data, by name.
    """

    parts: Mapping[str, Part]
    memories: Mapping[str, MemoryPart]
    kinds: Mapping[str, KindDefaults]
    links: tuple[KindLink, ...]
    memory_share: Achieved
    board: Board
    operators: Mapping[str, Support]
    sources: Mapping[str, Source]
    chips: Mapping[str, Mapping[str, Any]]

    def spelling_of(self, field: str, name: str) -> str | None:
        """Return how an entry of a field is spelled, whatever its case; None if there is none."""
        spellings = {entry.lower(): entry for entry in getattr(self, field)}
        return spellings.get(name.lower())


@cache
def catalogue() -> Catalogue:
    """Return the catalogue that comes with parapipe.

    Raises
    ------
    PlatformError
        If a file of it is missing or damaged.
    """
    folder = data_folder("platforms") / "catalogue"
    files = [_parsed_file(path) for path in sorted(folder.glob("*.yaml"))]
    tables = ("parts", "memories", "kinds", "operators", "sources")
    merged = {
        name: {key: entry for each in files for key, entry in getattr(each, name).items()}
        for name in tables
    }
    shares = [each.achieved for each in files if each.achieved]
    boards = [each.board for each in files if each.board]
    links = tuple(link for each in files for link in each.links)
    chips = {path.stem: _chip_values(path) for path in sorted((folder / "chips").glob("*.yaml"))}
    if not (shares and boards):
        raise PlatformError(f"files are missing from '{folder}'; install parapipe again")
    return Catalogue(links=links, memory_share=shares[0], board=boards[0], chips=chips, **merged)


def _parsed_file(path: Path) -> CatalogueFile:
    return parse_as(CatalogueFile, read_yaml_text(path, KIND), str(path), KIND)


def _chip_values(path: Path) -> Mapping[str, Any]:
    value = parse_yaml(read_yaml_text(path, KIND)).value
    if not isinstance(value, Mapping):
        raise PlatformError(f"'{path}' describes no chip; install parapipe again")
    return value


def _path_mistake(path: object) -> str:
    return "" if isinstance(path, Path) and path.is_file() else "is no path of a file"


def platforms() -> Registry:
    """Return the registry of platforms; that of a package is the `Path` of its file."""
    own = dict.fromkeys(shipped(), "")
    return Registry("platform", "parapipe.platforms", own, PlatformError, _path_mistake)


def shipped() -> tuple[str, ...]:
    """Return the names of all shipped platforms, sorted."""
    return tuple(sorted(path.stem for path in data_folder("platforms").glob("*.yaml")))


def shipped_values(name: str) -> object:
    """Return the plain values of a shipped platform's file.

    Parameters
    ----------
    name
        One of `shipped()`.
    """
    text = (data_folder("platforms") / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_yaml(text).value
