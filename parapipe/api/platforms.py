"""The platforms that are shipped, new ones of the catalogue, and checks of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from parapipe.api.checked import PlatformFile, checked
from parapipe.api.load import ZOO, load_model, load_platform
from parapipe.errors import ModelError
from parapipe.files.checked_arguments import Must, NotEmpty
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.platform.describe import CatalogueRows, PlatformDescription, PlatformRow
    from parapipe.platform.new import NewPlatform
    from parapipe.profiling.fitted_platform import FittedPlatform

Parts = Annotated[
    Sequence[NotEmpty], Must("a list of parts, as in ['4xCortex-A76@2.4GHz']", lax=True)
]


def list_platforms() -> tuple[PlatformRow, ...]:
    """Return a row for each shipped platform, sorted by name."""
    from parapipe.platform.describe import list_platforms as rows

    return rows()


def show_platform(platform: PlatformFile) -> dict[str, object]:
    """Return a platform in its file's own words, as plain data."""
    from parapipe.platform.describe import as_dict

    return as_dict(load_platform(platform))


def describe_platform(platform: PlatformFile) -> PlatformDescription:
    """Return a platform as tables of processors, links and sources."""
    from parapipe.platform.describe import describe

    return describe(load_platform(platform))


@checked
def check_platform(path: FilePath) -> None:
    """Raise a PlatformError with all its mistakes if a platform file is wrong."""
    from parapipe.platform.load import load_platform as load

    load(str(path))


def check_notes(path: Path) -> tuple[str, ...]:
    """Return what a file without mistakes leaves unknown, a sentence each."""
    from parapipe.platform.load import load_platform as load
    from parapipe.platform.states import unknown_clocks

    return tuple(unknown_clocks(load(str(path))))


@checked
def new_platform(
    *,
    chip: NotEmpty | None = None,
    cpu: Parts = (),
    gpu: Parts = (),
    npu: Parts = (),
    dsp: Parts = (),
    memory: NotEmpty | None = None,
    name: NotEmpty | None = None,
    full: bool = False,
) -> NewPlatform:
    """Describe a chip of the catalogue, or one made of its parts, as a platform file.

    All figures are nominal. A number before a part is that of cores, of a GPU's shader cores, or of
    identical NPUs or DSPs.

    Parameters
    ----------
    chip
        A chip of the catalogue, such as rk3588.
    cpu
        A cluster of cores, such as 4xCortex-A76@2.4GHz.
    gpu
        A GPU, such as Mali-G610 or 4xMali-G610@1GHz; replaces the chip's.
    npu
        An NPU, such as 3xRK3588-NPU; replaces the chip's.
    dsp
        A DSP; replaces the chip's.
    memory
        The memory, such as lpddr4x-32bit; replaces the chip's.
    name
        Name of the platform. Default: the chip's, or board.
    full
        Write down every figure instead of the names of parts.

    Raises
    ------
    PlatformError
        The catalogue does not know a name, or something is missing.
    """
    from parapipe.platform.new import new_platform as new

    parts = {"cpu": cpu, "gpu": gpu, "npu": npu, "dsp": dsp}
    return new(name=name, chip=chip, parts=parts, memory=memory, full=full)


@checked
def fit_platform(
    table: FilePath,
    platform: PlatformFile,
    *,
    view: Literal["deployed", "as-measured"] = "deployed",
) -> FittedPlatform:
    """Fit a platform's nominal figures to the times of whole networks.

    Launches and the rates of operator classes are fitted, to small relative errors, from a prior:
    the rates that the platform states, or else what the classes reach on boards whose operators
    were measured. Processors that the table does not have keep their figures.

    Parameters
    ----------
    table
        CSV file with the columns network, processor and ms: milliseconds of a frame, at the
        platform's default clocks, without loading it. A network is one of the zoo, by its name, or
        an ONNX file, by its path, relative to the table's folder.
    platform
        Without a profile, such as `new_platform` describes.
    view
        as-measured: the board ran batch-norm as an operator. deployed: its runtime folded it into
        the convolution before.

    Raises
    ------
    CostError
        The table is wrong, or too small; or the platform has measured operators.
    ModelError
        A network cannot be loaded.
    """
    from parapipe.profiling.fitted_platform import fit_platform as fit
    from parapipe.profiling.fitted_platform import read_network_times

    times = read_network_times(Path(table))
    loaded = load_platform(platform)
    graphs: dict[str, OperatorGraph] = {}
    for each in times:
        if each.network not in graphs:
            try:
                graphs[each.network] = load_model(_model_of(each.network, Path(table).parent))
            except ModelError as error:
                raise ModelError(f"{table}:{each.line}: {error}") from None
    return fit(loaded, times, graphs, table=Path(table).name, view=view)


def _model_of(network: str, folder: Path) -> str:
    """Return the model that a table of network times means."""
    from parapipe.zoo.registry import is_name

    if network.startswith(ZOO) or is_name(network):
        return f"{ZOO}{network.removeprefix(ZOO)}"
    return str(folder / network)


def refuse_changed(path: Path) -> None:
    """Raise an OutputError if there is a file already."""
    from parapipe.files.atomic import refuse_changed as refuse

    refuse(path)


def list_catalogue() -> CatalogueRows:
    """Return the chips, parts and memories that `new_platform` knows, as tables."""
    from parapipe.platform.describe import list_catalogue as rows

    return rows()
