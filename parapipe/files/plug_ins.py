"""Registries: things of one kind by name, those of parapipe and those of other installed packages.

A package adds its own by an entry point, whose group is that of the registry: see docs/plug-ins.md.
Packages are only looked at for a name that parapipe does not have, or where all names are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from parapipe.errors import ParapipeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


@dataclass(frozen=True, slots=True)
class Registry:
    """Things of one kind by name.

    Parameters
    ----------
    kind
        What messages call one of them.
    group
        The group of entry points by which other packages add theirs.
    own
        Those of parapipe: MODULE, or MODULE:NAME of what is in it.
    error
        What is raised.
    misfit
        Says what keeps a thing of another package from being one of the kind; empty if nothing
        does.
    """

    kind: str
    group: str
    own: Mapping[str, str]
    error: type[ParapipeError]
    misfit: Callable[[Any], str] = lambda _: ""

    def names(self) -> tuple[str, ...]:
        """Return the names of all, sorted.

        Raises
        ------
        ParapipeError
            If two have one name; it names the package, or both.
        """
        return tuple(sorted({*self.own, *self.names_of_others()}))

    def names_of_others(self) -> tuple[str, ...]:
        """Return the names of those of other packages, sorted; raises as `names` does."""
        names = sorted(_entry_points_of(self.group).names)
        return tuple(name for name in names if self.entry(name))

    def has(self, name: str) -> bool:
        """Tell whether there is one of that name; raises as `names` does."""
        return name in self.own or self.entry(name) is not None

    def entry(self, name: str) -> EntryPoint | None:
        """Return the entry point of another package that has a name; raises as `names` does."""
        entries = tuple(_entry_points_of(self.group).select(name=name))
        packages = [_package_text(each) for each in entries]
        if entries and name in self.own:
            raise self.error(
                f"the package {packages[0]} adds a {self.kind} '{name}', as parapipe's own is "
                "called; uninstall the package, or ask its authors for another name"
            )
        if len(entries) > 1:
            raise self.error(
                f"the packages {' and '.join(packages)} add a {self.kind} '{name}' each; uninstall "
                "one of them"
            )
        return entries[0] if entries else None

    def label(self, name: str) -> str:
        """Return the name in quotes, with the package if that is not parapipe."""
        package = self.package(name)
        return f"'{name}' of the package {package}" if package else f"'{name}'"

    def load(self, name: str) -> Any:  # noqa: ANN401 - each kind says what it is
        """Return the thing of a name that `has` knows.

        Raises
        ------
        ParapipeError
            If another package names it, and it cannot be imported or is none of the kind.
        """
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            return getattr(import_module(module), attribute) if attribute else import_module(module)
        entry = self.entry(name)
        assert entry is not None, "callers say what is wrong with a name that there is not"
        try:
            thing = entry.load()
            misfit = self.misfit(thing)
        except (Exception, SystemExit) as error:
            raise self.error(
                f"the {self.kind} {self.label(name)} cannot be imported from '{entry.value}' "
                f"({type(error).__name__}: {error}); install the package again, or tell its authors"
            ) from error
        if misfit:
            raise self.error(f"the {self.kind} {self.label(name)} {misfit}: see docs/plug-ins.md")
        return thing

    @contextmanager
    def failures_of(self, name: str, passing: type[Exception] = ParapipeError) -> Iterator[None]:
        """Call a thing in here; what one that is not parapipe's own raises becomes an error.

        Parameters
        ----------
        passing
            What it may raise beside errors of parapipe.

        Raises
        ------
        ParapipeError
            If it fails; says where.
        """
        try:
            yield
        except (ParapipeError, passing):
            raise
        except Exception as error:
            if name in self.own:
                raise
            at = extract_tb(error.__traceback__)[-1]
            raise self.error(
                f"the {self.kind} {self.label(name)} failed: {type(error).__name__}: {error} "
                f"({at.filename}, line {at.lineno})"
            ) from None

    def place(self, name: str) -> Path:
        """Return the folder of the Python package that a thing is in, or its module's only file."""
        entry = None if name in self.own else self.entry(name)
        module = (entry.value if entry else self.own[name]).partition(":")[0].strip()
        spec = find_spec(module.rpartition(".")[0] or module)
        assert spec is not None, "it has been imported"
        folders = spec.submodule_search_locations
        return Path(next(iter(folders)) if folders else str(spec.origin))

    def package(self, name: str) -> str:
        """Return the package that a name is of, with its version; empty if parapipe is it."""
        entry = None if name in self.own else self.entry(name)
        return _package_text(entry) if entry else ""


def _package_text(entry: EntryPoint) -> str:
    return f"'{entry.dist.name} {entry.dist.version}'" if entry.dist else f"of '{entry.value}'"


def _entry_points_of(group: str) -> EntryPoints:
    changed_s: dict[str, float] = {}
    for each in sys.path:
        with suppress(OSError):  # not there, or nobody's to read
            changed_s[each] = Path(each).stat().st_mtime
    return _cached_entry_points(group, (*changed_s.items(),))


@lru_cache(maxsize=16)
def _cached_entry_points(group: str, changed_s: tuple[tuple[str, float], ...]) -> EntryPoints:
    """Return those of a group; they depend on the folders in which Python looks for packages."""
    from importlib.metadata import entry_points  # takes time to load

    del changed_s
    return entry_points(group=group)
