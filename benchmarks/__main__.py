"""`python -m benchmarks [MODEL ...]`: wall seconds of each phase for each model.

Protocol: each phase runs once to warm up (imports, caches of files), then three times; the median
and the least are printed. One process, no other load on the machine.
"""

from __future__ import annotations

import os
import platform
import sys
from statistics import median
from time import perf_counter

import parapipe
from benchmarks.phases import PHASES

RUNS = 3


def main() -> None:
    """Measure the models that are named, or all of the zoo."""
    models = sys.argv[1:] or [f"zoo:{name}" for name in parapipe.zoo_examples()]
    versions = f"parapipe {parapipe.__version__}, Python {platform.python_version()}"
    print(f"{versions}, {os.cpu_count()} cores")
    print(f"{'model':<24}{'phase':<16}{'median s':>10}{'least s':>10}")
    for model in models:
        for phase, run in PHASES.items():
            run(model)
            times_s = []
            for _ in range(RUNS):
                begin_s = perf_counter()
                run(model)
                times_s.append(perf_counter() - begin_s)
            print(f"{model:<24}{phase:<16}{median(times_s):>10.3f}{min(times_s):>10.3f}")


if __name__ == "__main__":
    main()
