"""The compilers of NPU vendors by name.

A new one is one module with a class as `Compiler` in `compilers/contract.py` describes it, and a
line here or an entry point of a package that names the class.
"""

from __future__ import annotations

from typing import Any

from parapipe.compilers.contract import Compiler
from parapipe.errors import ArgumentError
from parapipe.files.mistakes import did_you_mean
from parapipe.files.plug_ins import Registry

_NEEDED = ("name", "title", "targets", "prices", "version", "compile", "simulate")


def _misfit(thing: Any) -> str:  # noqa: ANN401 - of another package
    missing = [each for each in _NEEDED if not hasattr(thing, each)]
    return f"has no `{missing[0]}`" if missing else ""


COMPILERS = Registry(
    "compiler",
    "parapipe.compilers",
    {
        "qnn": "parapipe.compilers.qnn.compiler:QnnCompiler",
        "rknn": "parapipe.compilers.rknn.compiler:RknnCompiler",
    },
    ArgumentError,
    _misfit,
)


def compiler(name: str) -> Compiler:
    """Return the compiler of a name.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    if not COMPILERS.has(name):
        names = COMPILERS.names()
        raise ArgumentError(
            f"there is no compiler '{name}': choose from {', '.join(names)}"
            f"{did_you_mean(name, names)}"
        )
    tool: Compiler = COMPILERS.load(name)()
    return tool
