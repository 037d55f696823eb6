"""A platform without some of its processors, as `map --exclude` takes it."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.errors import PlatformError
from parapipe.files.mistakes import did_you_mean, listed
from parapipe.platform.platform import Platform


def without_processors(platform: Platform, names: Sequence[str]) -> Platform:
    """Return a platform without processors, their links and what only they keep tensors in.

    It is the same as if its file did not state them; `Platform.excluded` still has them.

    Parameters
    ----------
    names
        Processors as the file names them: with one go its parts and streams.

    Raises
    ------
    PlatformError
        There is no processor of a name, or none is left.
    """
    unknown = [f"'{name}'" for name in names if name not in platform.names]
    has = f"platform '{platform.name}' has {', '.join(platform.names)}"
    if unknown:
        near = did_you_mean(unknown[0][1:-1], platform.names)
        raise PlatformError(f"`exclude` names {listed(unknown)}, and {has}{near}")
    left = tuple(each for each in platform.processors if each.name not in names)
    if not left:
        raise PlatformError(f"`exclude` leaves no processor: {has}; leave one of them in")
    if len(left) == len(platform.processors):
        return platform
    there = {each.name for each in left}
    memories = (
        each.model_copy(update={"processors": tuple(p for p in each.processors if p in there)})
        for each in platform.memories
    )
    reduced = platform.model_copy(
        update={
            "processors": left,
            "links": tuple(
                each for each in platform.links if {each.sender, each.receiver} <= there
            ),
            "memories": tuple(each for each in memories if each.processors),
        }
    )
    reduced._excluded = tuple(each for each in platform.processors if each.name not in there)
    controllers = there.union(filter(None, (each.host for each in left)))
    if controllers != there:
        others = [name for name in names if name not in controllers]
        reduced._with_controllers = without_processors(platform, others)
    return reduced
