"""`python -m benchmarks.fuzz [--onnx N] [--yaml N]`: read damaged files, and count how that ends.

A mutant must be read, or refused with one line of a ParapipeError, in bounded time and memory. What
is read goes on through partition, costs and the table of `inspect`. Each worker process reads one
file at a time; one that takes longer than SECONDS of processor time or crashes is ended by the
system, which is a finding too, and so is a file that needs more than MEMORY_BYTES beyond what the
worker had before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from ctypes import c_long
from functools import cache
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from benchmarks.mutants import onnx_bases, onnx_mutant, yaml_mutant
from parapipe.errors import ParapipeError
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.platform import Platform

SECONDS = 20
MEMORY_BYTES = 2 << 30
LONGEST_LINE = 4000
ROOT = Path(__file__).parents[1]
Read = Callable[[bytes, Path], str]


@cache
def _bases() -> list[bytes]:
    return onnx_bases()


@cache
def _platforms() -> list[str]:
    paths = sorted((ROOT / "platforms").glob("*.yaml"))
    return [path.read_text(encoding="utf-8") for path in paths]


@cache
def _rules() -> list[str]:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


def read_onnx(content: bytes, folder: Path) -> str:
    """Read a model and go on with it as the commands do; return how that ended."""
    from parapipe.cost.cost_table import build_cost_table
    from parapipe.documents.inspection import inspect_graph
    from parapipe.graph.onnx_import import import_model
    from parapipe.graph.rewrites import fuse

    path = folder / "mutant.onnx"
    path.write_bytes(content)
    graph = import_model(path, granularity="onnx")
    inspect_graph(graph, None)
    build_cost_table(fuse(graph), _platform(), profiles=())
    return "read"


@cache
def _platform() -> Platform:
    from parapipe.platform.load import load_platform

    return load_platform("amlogic-a311d")


def read_platform_file(content: bytes, folder: Path) -> str:
    """Read a platform file; return how that ended."""
    from parapipe.platform.load import load_platform

    path = folder / "mutant.yaml"
    path.write_bytes(content)
    load_platform(str(path))
    return "read"


def read_rules_file(content: bytes, folder: Path) -> str:
    """Read a rules file and apply it; return how that ended."""
    from parapipe.cost.rules import apply_rules, load_rules

    path = folder / "mutant.yaml"
    path.write_bytes(content)
    apply_rules(_model_with_unknown_operators(), load_rules(path), str(path))
    return "read"


@cache
def _model_with_unknown_operators() -> OperatorGraph:
    from parapipe.graph.onnx_import import import_proto
    from parapipe.graph.operator_graph import ModelSource

    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[1,64,28,28] x) => (float[1,64,28,28] y) <float[64,64] w, float[1,64,28,28] a> {
            a = com.example.DeformableAttention<heads = 4>(x, x)
            y = com.example.DeformableAttention(a, x)
        }"""
    )
    return import_proto(model, source=ModelSource("g.onnx", ""), granularity="onnx")


KINDS: Mapping[str, tuple[Callable[[int], bytes], Read]] = {
    "onnx": (lambda number: onnx_mutant(_bases(), number), read_onnx),
    "platform": (lambda number: yaml_mutant(_platforms(), number), read_platform_file),
    "rules": (lambda number: yaml_mutant(_rules(), number), read_rules_file),
}


def ending(kind: str, number: int, folder: Path) -> str:
    """Return "read", "refused", or what is wrong, for one mutant."""
    mutant, read = KINDS[kind]
    content = mutant(number)
    try:
        return read(content, folder)
    except ParapipeError as error:
        message = str(error)
        if len(message) > LONGEST_LINE:
            return f"a message of {len(message)} characters"
        return "refused"
    except Exception as error:  # noqa: BLE001 - this is what the fuzzer looks for
        return f"{type(error).__name__}: {str(error)[:200]}"


def _work(kind: str, numbers: range, at: Synchronized[int], results: object) -> None:
    """Read mutants one after the other; `at` says which one, should this process be ended."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    used = (
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        * resource.getpagesize()
    )
    limit = used + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with TemporaryDirectory() as folder:
        for number in numbers:
            at.value = number
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            results.put((number, ending(kind, number, Path(folder))))  # type: ignore[attr-defined]
    os._exit(0)  # what other threads had begun when this process was forked is not its to end


def fuzz(kind: str, numbers: range) -> dict[int, str]:
    """Read all mutants of a range in a process of its own; return how each ended, by number."""
    context = multiprocessing.get_context("fork")
    found: dict[int, str] = {}
    while numbers:
        at: Synchronized[int] = context.Value(c_long, numbers.start)
        results = context.SimpleQueue()
        worker = context.Process(target=_work, args=(kind, numbers, at, results))
        worker.start()
        while worker.is_alive() or not results.empty():
            if results.empty():
                time.sleep(0.02)
                continue
            number, how = results.get()
            found[number] = how
        if worker.exitcode == 0:
            break
        found[at.value] = f"the process ended with {worker.exitcode}"
        numbers = range(at.value + numbers.step, numbers.stop, numbers.step)
    return found


def _jobs(kind: str, count: int, first: int, jobs: int) -> dict[int, str]:
    from concurrent.futures import ThreadPoolExecutor

    # Numbers of its own for each: a thread's workers are all forked while others run pure Python.
    shares = [range(first + job, first + count, jobs) for job in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        return {
            n: how
            for part in pool.map(lambda numbers: fuzz(kind, numbers), shares)
            for n, how in part.items()
        }


def main() -> int:
    """Fuzz as asked, print the counts and all findings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--onnx", type=int, default=20_000, help="mutated models")
    parser.add_argument("--yaml", type=int, default=5_000, help="mutated platforms, and rules")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for the mutants that are findings")
    options = parser.parse_args()
    wrong = 0
    for kind in KINDS:
        count = options.onnx if kind == "onnx" else options.yaml
        begin_s = time.perf_counter()
        found = _jobs(kind, count, options.first, options.jobs)
        took_s = time.perf_counter() - begin_s
        counts = Counter(how for how in found.values() if how in ("read", "refused"))
        print(f"{kind}: {len(found)} mutants, {dict(counts)}, {took_s:.0f} s", flush=True)
        for number, how in sorted(found.items()):
            if how in ("read", "refused"):
                continue
            wrong += 1
            print(f"  {kind} {number}: {how}")
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{kind}-{number}").write_bytes(KINDS[kind][0](number))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"findings: {wrong}; largest process {peak:.0f} MiB")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
