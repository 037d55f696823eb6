"""The platforms that are shipped, and checks of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parapipe.api.checked import PlatformFile, checked
from parapipe.api.load import load_platform
from parapipe.pipeline.options import FilePath

if TYPE_CHECKING:
    from parapipe.platform.describe import PlatformDescription, PlatformRow


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
