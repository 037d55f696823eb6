"""The target `ncnn`: segments that pnnx converts, and the runner of exported folders."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Final

from parapipe.compilers.samples import write_arrays
from parapipe.errors import ExportError
from parapipe.export.exported import Exported, export_folder, readme
from parapipe.export.onnxruntime.folder import PLAN, check_array_types
from parapipe.export.onnxruntime.parts import Parts, parts_of
from parapipe.export.onnxruntime.session_document import session_plan
from parapipe.export.segment_files import write_parts
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.files.progress import Progress, Tell
from parapipe.plan.schema import Plan, Processor
from parapipe.runtime.copied import NUMPY, runner_files
from parapipe.runtime.document import SCHEMA, Segment, SessionPlan
from parapipe.runtime.expected import EXPECTED, SAMPLE
from parapipe.runtime.frames import random_frames
from parapipe.runtime.ncnn_sessions import FLOAT16, PROVIDER, THREADS, VULKAN
from parapipe.targets.borders import Borders, FloatSegment
from parapipe.targets.ncnn.conversion import Job, RefusedError, convert
from parapipe.targets.ncnn.refused import RefusedNode, refused_nodes
from parapipe.targets.ncnn.tools import Tools, find_tools

TAKES: Final = ("progress",)
TARGET: Final = "ncnn"
SAMPLES: Final = 2
_KINDS: Final = ("cpu", "gpu")
USE = """
It needs Python 3.10, numpy and the package ncnn, nothing of parapipe. On the board, in this folder:

    python3 -m pip install -r requirements.txt
    python3 run.py --check
    python3 run.py

The first run compares results with those of ONNX Runtime, which stand in the folder. The second one
runs a hundred frames of random numbers, and prints measured beside predicted figures; `python3
run.py --help` lists options. A GPU needs its driver for Vulkan; without, run.py says that the CPU
stands in for it.
"""
FILES = {
    "run.py": "runs the folder",
    "requirements.txt": "the packages that it needs",
    "parapipe_runtime": "its modules",
    "plan.json": "segments, channels between them, processors, predicted figures",
    "NN-PROCESSOR.param, NN-PROCESSOR.bin": "a segment: operators that a processor runs without "
    "waiting for another, and its weights",
    f"{SAMPLE}, {EXPECTED}": "inputs of the model, and what ONNX Runtime makes of them",
}
_WORK = "work"


def export(
    plan: Plan, model: Path, destination: Path | None, *, progress: Tell | None = None
) -> Exported:
    """Convert the segments and write the folder; an earlier export there is replaced.

    Parameters
    ----------
    progress
        Told how many segments are converted.

    Raises
    ------
    ExportError
        If no folder is named, pnnx or ncnn is not installed, the plan uses what ncnn does not run,
        or operators have no form there: all of them by name.
    OutputError
        If the folder holds anything else, or cannot be written.
    PlanError
        If the plan's operators are not those of the model.
    """
    options = _options_of(plan)
    tools = find_tools()

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        work = folder / _WORK
        work.mkdir()
        own_types = plan.model_copy(update={"precision": None})
        parts = parts_of(own_types, model)
        check_array_types(own_types, parts.segments, parts.handovers)
        write_parts(own_types, parts, parts.segments, work)
        document = _session_document(parts, options)
        _check_borders(plan, document)
        conversion = _Conversion(plan, document, work, tools, progress)
        conversion.run()
        document = _move_files(conversion, document, folder)
        shutil.rmtree(work)
        content = json.dumps(asdict(document), indent=1) + "\n"
        (folder / PLAN).write_text(content, encoding="utf-8")
        for name, code in runner_files((NUMPY, f"ncnn>={tools.ncnn}")).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(code)
        return tuple(_summary(document, conversion.differences)), tuple(_notes(plan, options))

    about = readme(plan, TARGET, USE, FILES)
    return export_folder(TARGET, destination, SCHEMA, _earlier_names, write, readme=about)


def _options_of(plan: Plan) -> dict[str, dict[str, str]]:
    """Return ncnn's options for each processor; refuse those that ncnn does not run."""
    odd = [f"{each.name} ({each.kind})" for each in plan.processors if each.kind not in _KINDS]
    if odd:
        leave = " ".join(f"--exclude {name.partition(' ')[0]}" for name in odd)
        raise ExportError(
            f"the plan uses {listed(odd)}, and ncnn runs on CPUs and GPUs: map with `{leave}`, or "
            "choose a configuration without it"
        )
    types = {each.data_type or "float32" for each in plan.processors}
    if plan.precision not in (None, FLOAT16) or not types <= {"float32", FLOAT16}:
        raise ExportError(
            f"the plan is for {plan.precision or listed(sorted(types))}, and the target {TARGET} "
            "computes in float32 or float16: map with `precision` model or float16"
        )
    return {each.name: dict(_options(each)) for each in plan.processors}


def _options(processor: Processor) -> Iterator[tuple[str, str]]:
    if processor.kind == "gpu":
        yield VULKAN, "0"
    if processor.data_type == FLOAT16:
        yield FLOAT16, "1"


def _session_document(parts: Parts, options: Mapping[str, Mapping[str, str]]) -> SessionPlan:
    """Return what the runner reads, with files of ncnn in place of ONNX."""
    numbered = tuple(replace(each, file=f"{each.id}.param") for each in parts.segments)
    document = session_plan(parts.plan, numbered, parts.handovers, {})
    processors = tuple(
        replace(
            each,
            provider=PROVIDER,
            options=options[each.name],
            threads_option=None if VULKAN in options[each.name] else THREADS,
            substitute=None,
        )
        for each in document.processors
    )
    return replace(document, processors=processors, whole=None)


def _check_borders(plan: Plan, document: SessionPlan) -> None:
    """Refuse sequences between segments, which no sample of arrays holds."""
    odd = {name for name, each in document.tensors.items() if "(" in each.dtype}
    stuck = [v.id for v in plan.operators if odd.intersection((*v.inputs, *v.outputs))]
    if stuck:
        raise ExportError(
            f"{plan.model.name}: {listed(stuck)} hand on what is no tensor, and ncnn knows nothing "
            "else: export to onnxruntime",
            stuck,
        )


@dataclass
class _Conversion:
    """Segments being converted, in their order, with samples of what goes into each.

    Parameters
    ----------
    work
        Folder with the ONNX files of the segments.
    """

    plan: Plan
    document: SessionPlan
    work: Path
    tools: Tools
    tell: Tell | None
    differences: dict[str, float] = field(default_factory=dict)
    reasons: dict[bytes, str] = field(default_factory=dict)
    refused: list[RefusedNode] = field(default_factory=list)

    def run(self) -> None:
        """Convert; write samples of the model's inputs and what ONNX Runtime makes of them.

        Raises
        ------
        ExportError
            With the name of each operator that has no form in ncnn.
        """
        count = 1 if self.document.states else SAMPLES
        borders = Borders(self.work / "borders")
        samples = list(random_frames(self.document, count))
        for number, sample in enumerate(samples):
            borders.write(number, sample)
        begin_s = monotonic()
        for done, segment in enumerate(self.document.segments):
            if self.tell is not None:
                passed_s = monotonic() - begin_s
                total = len(self.document.segments)
                self.tell(Progress(done, total, 0.0, passed_s, phase="compiling"))
            self._convert(segment, borders, count)
        if self.refused:
            raise ExportError(self._refusal(), self._operators_in_the_way())
        names = [each.tensor for each in self.document.outputs]
        results = [borders.read(number, names) for number in range(count)]
        _write_frames(self.work / SAMPLE, samples)
        _write_frames(self.work / EXPECTED, results)

    def _convert(self, segment: Segment, borders: Borders, count: int) -> None:
        model = self.work / f"{segment.id}.onnx"
        exact = FloatSegment(model, segment.outputs)
        for number in range(count):
            borders.write(number, exact.run(borders.read(number, segment.inputs)))
        inputs, outputs = (borders.read(0, names) for names in (segment.inputs, segment.outputs))
        job = Job(model, inputs, outputs)
        try:
            self.differences[segment.id] = convert(job, self.tools)
        except RefusedError as error:
            folder = self.work / f"{segment.id}.nodes"
            folder.mkdir()
            self.refused += refused_nodes(job, error.reason, self.tools, folder, self.reasons)

    def _refusal(self) -> str:
        named = [f"'{each.node}' ({each.operator_type}): {each.reason}" for each in self.refused]
        several = len(named) > 1
        count = f"{len(named)} operators have" if several else "an operator has"
        return (
            f"{self.plan.model.name}: {count} no form in ncnn: {listed_sentences(named)}; export "
            "to onnxruntime or native, or change the model there"
        )

    def _operators_in_the_way(self) -> list[str]:
        names = {each.node for each in self.refused}
        return [v.id for v in self.plan.operators if names.intersection((v.id, *v.members))]


def _write_frames(path: Path, frames: Sequence[Mapping[str, Any]]) -> None:
    import numpy as np

    write_arrays(path, {name: np.stack([f[name] for f in frames]) for name in frames[0]})


def _move_files(conversion: _Conversion, document: SessionPlan, folder: Path) -> SessionPlan:
    """Put what the runner needs into the folder; return the document with the digests."""
    segments = [each.file for each in document.segments]
    names = [*segments, *(Path(each).with_suffix(".bin").name for each in segments)]
    files = {}
    for name in (*names, SAMPLE, EXPECTED):
        (conversion.work / name).rename(folder / name)
        files[name] = sha256((folder / name).read_bytes()).hexdigest()
    return replace(document, files=dict(sorted(files.items())))


def _earlier_names(document: Mapping[str, Any]) -> set[str]:
    """Return the names that an earlier export has put beside its plan."""
    return {*(Path(name).parts[0] for name in runner_files()), *document.get("files", ())}


def _summary(document: SessionPlan, differences: Mapping[str, float]) -> Iterator[str]:
    counts = Counter(each.processor for each in document.segments)
    shares = ", ".join(
        f"{counts[each.name]} on {'/'.join(each.turns) or each.name}"
        for each in document.processors
        if each.name == each.first
    )
    yield f"segments    {len(document.segments)}: {shares}"
    yield f"channels    {sum(each.producer is not None for each in document.channels)}"
    worst = max(differences, key=lambda each: differences[each])
    yield (
        f"accuracy    off ONNX Runtime by {differences[worst]:.1e} of an output's largest number "
        f"at most, in {worst}"
    )


def _notes(plan: Plan, options: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    backends = sorted({each.backend for each in plan.processors})
    yield f"the plan's times are those of {listed(backends)}; ncnn's kernels may take others"
    halved = [name for name, each in options.items() if FLOAT16 in each]
    if halved:
        yield f"{listed(halved)} may compute in float16 there; segments were checked in float32"
