"""What an option does beside its type and its meaning: the metadata of its field in a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Traits:
    """What an option does beside its type and its meaning.

    Parameters
    ----------
    section
        Of help that lists it.
    metavar
        What help calls its value, if its type does not say that.
    several
        What it means for several models: the same for each; the same, and its keys begin with a
        model's name and a slash; a value by each model's name, for several models only. Or it is
        refused, or has no effect.
    changes_results
        Whether results depend on it. If not, it is neither in the command that makes a front again
        nor in the options of a sweep.
    reads_model
        Whether a model is read with it.
    solves
        Whether it decides how a subgraph is solved, and so belongs to the key in the cache.
    idle
        Says why it has no effect beside the values of all options, by name; nothing if it has one.
    text
        Writes a value as the command line takes it.
    """

    section: Literal["common", "model", "search", "limits"]
    metavar: str | None = None
    several: Literal["same", "prefixed", "by model", "refused", "no effect"] = "same"
    changes_results: bool = True
    reads_model: bool = False
    solves: bool = False
    idle: Callable[[Mapping[str, Any]], str] = lambda _given: ""
    text: Callable[[Any], str] = str


def traits(
    section: Literal["common", "model", "search", "limits"],
    **others: Any,  # noqa: ANN401 - `Traits` has their types
) -> Mapping[str, Traits]:
    """Return the metadata of an option's field."""
    return {"traits": Traits(section, **others)}


def needs(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the trait of an option that has no effect without another one."""
    why = f"has no effect without --{name}; give both or neither"
    return lambda given: "" if given[name] else why
