"""What a measurement was made on, so that its numbers can be judged."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from parapipe.version import __version__

PACKAGES = ("ortools", "pulp", "numpy", "onnx")
GIB = 1 << 30


def description() -> dict[str, str]:
    """Return processor, cores, memory, load, versions, date and command."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["python", *_arguments()]),
        "CPU": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{pages / GIB:.1f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "load when begun": load(),
        "versions": f"parapipe {__version__}, Python {platform.python_version()}, {packages}",
    }


def load() -> str:
    """Return how many processes wanted a core in the last 1, 5 and 15 minutes."""
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())


def _arguments() -> list[str]:
    """Return the command line, with a module named as `-m` names it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["-m", spec.name, *sys.argv[1:]] if spec else sys.argv


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"
