"""Writes the folder: compiled segments, ONNX for the CPU, and the runner of exported folders."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from parapipe.compilers.compile import tool_version
from parapipe.compilers.contract import CompiledSegment, Precision
from parapipe.export import segment_manifest as manifest
from parapipe.export.exported import Exported, export_folder, readme
from parapipe.export.onnxruntime.folder import PLAN, check_array_types
from parapipe.export.onnxruntime.parts import Parts, parts_of
from parapipe.export.onnxruntime.session_document import session_plan
from parapipe.export.segment_files import earlier_files, write_parts
from parapipe.files.mistakes import listed
from parapipe.files.progress import Tell
from parapipe.plan.schema import Plan, Processor
from parapipe.runtime.copied import REQUIREMENTS, runner_files
from parapipe.runtime.document import SessionPlan
from parapipe.runtime.rknn_sessions import CORE_MASK, PROVIDER
from parapipe.targets.borders import random_sample, samples_of
from parapipe.targets.rknn.agreement import Agreement, agreement_lines
from parapipe.targets.rknn.chips import COMPILER, core_masks, npus_of, target_of
from parapipe.targets.rknn.compilation import Compilation

TAKES: Final = ("calibration", "check", "progress")
USE = """
Segments of an NPU are compiled for {target}, in {precision}. No board was measured: run it on one.
It needs Python 3.10 to 3.12, and `librknnrt.so` of version {version} or newer, which comes with the
board's image or from Rockchip. From the folder around this one, with the board's name for BOARD:

    scp -r {name} BOARD:
    ssh BOARD 'cd {name} && python3 -m pip install -r requirements.txt'
    ssh BOARD 'cd {name} && python3 run.py'

The last one runs a hundred frames of random numbers, and prints measured beside predicted figures;
`python3 run.py --help` lists options. Set the clocks of NPU and CPU to those of the plan before.
"""
FILES = {
    "run.py": "runs the folder",
    "requirements.txt": "the packages that it needs",
    "parapipe_runtime": "its modules",
    "plan.json": "segments, channels between them, processors, predicted figures",
    manifest.FILE: "the same segments, with what the compiler says of each",
    "NN-NPU.rknn": "a segment for a core of the NPU",
    "NN-PROCESSOR.onnx": "a segment for the CPU",
}
_WORK = "work"


def export(
    plan: Plan,
    model: Path,
    destination: Path | None,
    *,
    calibration: Path | None = None,
    check: bool = False,
    progress: Tell | None = None,
) -> Exported:
    """Compile the segments and write the folder; an earlier export there is replaced.

    Parameters
    ----------
    calibration
        Samples of the model's inputs, for int8; float16 without.
    check
        Run a sample through the compiler's simulator.
    progress
        Told how many segments are compiled.

    Raises
    ------
    ExportError
        If no folder is named, the plan uses what the folder cannot run, samples do not fit, or
        segments do not compile: a line each.
    CompileError
        If the compiler is not installed.
    OutputError
        If the folder holds anything else, or cannot be written.
    PlanError
        If the plan's operators are not those of the model.
    """
    npus = npus_of(plan)
    version = tool_version(COMPILER)
    precision: Precision = "float16" if calibration is None else "int8"
    agreements: list[Agreement] = []

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        work = folder / _WORK
        work.mkdir()
        own_types = plan.model_copy(update={"precision": None})
        parts = parts_of(own_types, model)
        check_array_types(own_types, parts.segments, parts.handovers)
        listed_segments = write_parts(own_types, parts, parts.segments, work)
        compilation = Compilation(plan, listed_segments, work, npus, precision, check, progress)
        document = _session_document(plan, parts, npus)
        compiled = compilation.run(_samples(document, calibration, check=check))
        agreements.extend(compilation.agreements)
        written = _move_files(compilation, compiled, folder)
        shutil.rmtree(work)
        _write_documents(folder, written, document, version)
        return tuple(_summary(written, agreements)), tuple(_notes(plan, precision, written))

    target = target_of(next(iter(npus.values())))
    name = shlex.quote((destination or Path(COMPILER)).resolve().name)
    use = USE.format(target=target, version=version, precision=precision, name=name)
    about = readme(plan, COMPILER, use, FILES)
    exported = export_folder(
        COMPILER, destination, manifest.SCHEMA, _earlier_names, write,
        document=manifest.FILE, readme=about,
    )  # fmt: skip
    if not check:
        return exported
    return replace(exported, accuracy=tuple(asdict(each) for each in agreements))


def _earlier_names(document: Mapping[str, Any]) -> set[str]:
    """Return the names that an earlier export has put beside its manifest."""
    own = any("compiled" in each for each in document.get("segments", ()))
    beside = {PLAN, *(Path(name).parts[0] for name in runner_files())} if own else set()
    return {*earlier_files(document), *beside}


def _samples(
    document: SessionPlan, calibration: Path | None, *, check: bool
) -> Iterable[Mapping[str, Any]]:
    if calibration is not None:
        return samples_of(calibration, document)
    return [random_sample(document)] if check else []


def _session_document(plan: Plan, parts: Parts, npus: Mapping[str, Processor]) -> SessionPlan:
    """Return what the runner reads, with the compiled files in place of the NPU segments' ONNX."""
    masks = core_masks(npus)
    numbered = tuple(
        replace(each, file=f"{each.id}.rknn") if each.processor in npus else each
        for each in parts.segments
    )
    document = session_plan(parts.plan, numbered, parts.handovers, {})
    processors = tuple(
        replace(
            each,
            provider=PROVIDER,
            options={} if masks[each.name] is None else {CORE_MASK: str(masks[each.name])},
            threads_option=None,
            substitute=None,
        )
        if each.name in npus
        else each
        for each in document.processors
    )
    return replace(document, processors=processors, whole=None)


def _move_files(
    compilation: Compilation, compiled: Mapping[str, CompiledSegment], folder: Path
) -> manifest.Manifest:
    """Put the files of the segments into the folder; return the manifest that says so."""

    def placed(segment: manifest.Segment) -> manifest.Segment:
        if (of := compiled.get(segment.id)) is None:
            for each in filter(None, (segment, segment.weights)):
                (compilation.folder / each.file).rename(folder / each.file)
            return segment
        file = f"{segment.id}.rknn"
        shutil.copyfile(of.artefact, folder / file)
        about = manifest.Compiled(
            compiler=of.tool,
            version=of.version,
            target=target_of(compilation.npus[segment.processor]),
            precision=compilation.precision,
            on_cpu=tuple(dict.fromkeys(each.node for each in of.on_cpu)),
            weight_bytes=of.weight_bytes,
            internal_bytes=of.internal_bytes,
        )
        changes = {"file": file, "sha256": of.sha256, "weights": None, "compiled": about}
        return segment.model_copy(update=changes)

    segments = tuple(map(placed, compilation.document.segments))
    return compilation.document.model_copy(update={"segments": segments})


def _write_documents(
    folder: Path, written: manifest.Manifest, document: SessionPlan, version: str
) -> None:
    files = {
        each.file: each.sha256
        for segment in written.segments
        for each in (segment, segment.weights)
        if each is not None
    }
    segments = tuple(
        replace(own, on_cpu=each.compiled.on_cpu) if each.compiled else own
        for own, each in zip(document.segments, written.segments, strict=True)
    )
    document = replace(document, files=files, segments=segments)
    content = json.dumps(asdict(document), indent=1) + "\n"
    (folder / PLAN).write_text(content, encoding="utf-8")
    (folder / manifest.FILE).write_bytes(written.to_bytes())
    needed = (*REQUIREMENTS, f"rknn-toolkit-lite2>={version}")
    for name, content_bytes in runner_files(needed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content_bytes)


def _summary(written: manifest.Manifest, agreements: list[Agreement]) -> Iterator[str]:
    counts = Counter(
        (
            "/".join((each.processor, *(each.replicas or ()))),
            "compiled" if each.compiled else "ONNX",
        )
        for each in written.segments
    )
    shares = ", ".join(f"{count} {kind} for {name}" for (name, kind), count in counts.items())
    yield f"segments    {len(written.segments)}: {shares}"
    yield f"transfers   {len(written.transfers)}"
    if agreements:
        yield from agreement_lines(agreements)


def _notes(plan: Plan, precision: Precision, written: manifest.Manifest) -> Iterator[str]:
    if plan.precision not in (None, precision):
        wanted = "give samples by --calibration" if plan.precision == "int8" else "leave it out"
        yield (
            f"the plan's times are for {plan.precision}, and segments of the NPU are compiled in "
            f"{precision}: {wanted}, or map with `--precision {precision}`"
        )
    if plan.precision is not None and any(each.compiled is None for each in written.segments):
        yield "segments of the CPU compute in the model's own data types"
    for each in written.segments:
        if each.compiled is not None and each.compiled.on_cpu:
            yield (
                f"inside {each.file}, the board's CPU runs {listed(each.compiled.on_cpu)}: the "
                "plan's times do not count that; `--pin` keeps them on a CPU"
            )
