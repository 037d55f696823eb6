"""`parapipe profile`: times of a model's operators, measured here or on a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from parapipe.api.compiled import COMPILE_TIME_S
from parapipe.cli.fit import slowdown_lines
from parapipe.cli.options import FILE, json_option, quiet_option
from parapipe.cli.output import Row, print_document, print_note
from parapipe.cli.progress import progress_shown
from parapipe.cli.verb_options import VerbCommand, options


@click.command(cls=VerbCommand)
@click.argument("model", required=False)
@click.option("--platform", required=True, help="This machine's YAML file, or the board's.")
@options("profile", "out", "again", "operators_only", "parts", "most_useful")
@click.option("--bundle", type=FILE, metavar="DIR", help="Write a folder to measure on a board.")
@click.option(
    "--import",
    "results",
    type=FILE,
    metavar="FILE",
    help="Import a board's times, or with MODEL another tool's.",
)
@options("import_profile", "processor", processor={"metavar": "NAME"})
@options(
    "learn_from_runs", "from_run",
    from_run={"flag": "--from-run", "type": FILE, "metavar": "RUN.json", "multiple": True,
              "default": (), "required": False},
)  # fmt: skip
@click.option(
    "--under-load",
    is_flag=True,
    help="Measure how much processors slow each other down when all run MODEL, and print the "
    "platform file's section for it; no profile is written.",
)
@options(
    "profile_on_runtime", "runtime", runtime={"required": False, "default": None},
)  # fmt: skip
@options("measure_streams", "streams", streams={"default": None, "required": False})
@options(
    "compile_profile",
    "compiler",
    "precision",
    "compile_time_s",
    compiler={"required": False, "default": None},
)
@options("MapOptions", "dims", "shapes", "rules", "at_most")
@quiet_option
@json_option
def command(
    *,
    model: str | None,
    platform: str,
    out: Path | None,
    again: bool,
    operators_only: bool,
    parts: bool,
    most_useful: int | None,
    bundle: Path | None,
    results: Path | None,
    processor: Sequence[str],
    from_run: Sequence[Path],
    under_load: bool,
    streams: int | None,
    runtime: str | None,
    compiler: str | None,
    precision: Any,  # noqa: ANN401 - click checks
    compile_time_s: float,
    quiet: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Measure each distinct operator of MODEL with ONNX Runtime on a platform's processors.

    Each processor's cores get a session of their own. Then the whole of MODEL is run, in
    pipelines and by all processors at once, and operators share the times of their segments. The
    profile that is written is found by `parapipe map`; what stands in it already is not measured
    again. For `map --split auto`,
    --parts measures parts of operators as well. --runtime native measures with the C++ runner's
    kernels. For a processor that runs several operators at once, --streams measures how much these
    slow each other down; --under-load measures how much processors do. For an NPU, --compiler takes
    the times out of what its vendor's compiler tells. --import takes them out of a file of a board,
    or of ONNX Runtime or another tool that has profiled MODEL.
    """
    here = bool(again or operators_only or most_useful)
    modes = {
        "--streams": streams,
        "--under-load": under_load,
        "--import": results,
        "--from-run": from_run,
        "--bundle": bundle,
        "--compiler": compiler,
        "--runtime": runtime,
    }
    _check_compiler(modes, here=here or parts, of_compiler=(precision, compile_time_s))
    _check_import(model, results, processor)
    _check_modes(modes, {"MODEL": model, "--out": out, "--parts": parts}, here=here)
    import parapipe

    if bundle:
        left_out = parapipe.write_profile_bundle(str(model), platform, bundle, parts=parts, **given)
        document = {"bundle": str(bundle), "left_out": list(left_out)}
        print_document(document, _bundle_lines, as_json=as_json)
        return
    if streams:
        with progress_shown(quiet=quiet) as progress:
            laws = parapipe.measure_streams(
                str(model), platform, streams, note=print_note, progress=progress, **given
            )
        streams_document = {"model": model, "streams": [law.to_json() for law in laws]}
        print_document(streams_document, _law_lines, as_json=as_json)
        return
    if under_load:
        with progress_shown(quiet=quiet) as progress:
            fits = parapipe.measure_under_load(
                str(model), platform, note=print_note, progress=progress, **given
            )
        title = f"parapipe profile {model} --under-load"
        print_document(
            {"model": model, "slowdowns": [fit.to_json() for fit in fits]},
            lambda document: slowdown_lines(document["slowdowns"], title),
            as_json=as_json,
        )
        return
    if compiler:
        report = parapipe.compile_profile(
            str(model),
            platform,
            compiler,
            out=out,
            precision=precision,
            compile_time_s=compile_time_s,
            **given,
        )
    elif results:
        of_model = {"precision": precision, **given} if model else {}
        report = parapipe.import_profile(
            results, platform, model, processor=processor, out=out, **of_model
        )
    elif runtime:
        with progress_shown(quiet=quiet) as progress:
            report = parapipe.profile_on_runtime(
                str(model), platform, runtime, out=out, parts=parts, progress=progress, **given
            )
    elif from_run:
        report = parapipe.learn_from_runs(str(model), platform, from_run, out=out, **given)
    else:
        with progress_shown(quiet=quiet) as progress:
            report = parapipe.profile(
                str(model),
                platform,
                out=out,
                again=again,
                operators_only=operators_only,
                parts=parts,
                most_useful=most_useful,
                progress=progress,
                **given,
            )
    how = "compiled" if compiler else "imported" if results and model else "measured"
    lines = partial(_report_lines, how=how)
    print_document(report.to_json(), lines, as_json=as_json)


def _check_compiler(
    modes: Mapping[str, object], *, here: bool, of_compiler: tuple[str | None, float]
) -> None:
    """Refuse options beside --compiler that it has no use for, and its own without it."""
    requested = [name for name, value in modes.items() if value]
    if modes["--compiler"] and (len(requested) > 1 or here):
        raise click.UsageError(
            "--compiler measures nothing: it takes no --bundle, --import, --from-run, --streams, "
            "--again, --operators-only, --parts or --most-useful"
        )
    precision, compile_time_s = of_compiler
    if not modes["--compiler"] and compile_time_s != COMPILE_TIME_S:
        raise click.UsageError("--compile-time has no effect without --compiler")
    if not (modes["--compiler"] or modes["--import"]) and precision is not None:
        raise click.UsageError("--precision has no effect without --compiler or --import")


def _check_import(model: str | None, results: Path | None, processor: Sequence[str]) -> None:
    """Refuse what only the import of another tool's file has a use for."""
    if processor and not (results and model):
        raise click.UsageError("--processor has no effect without MODEL and --import")


def _check_modes(modes: Mapping[str, object], others: Mapping[str, object], *, here: bool) -> None:
    """Refuse options that do not go together; `here` stands for those of measuring operators."""
    requested = [name for name, value in modes.items() if value]
    if "--import" in requested and (len(requested) > 1 or here or others["--parts"]):
        raise click.UsageError(
            "--import takes no --bundle, --again, --operators-only, --parts, --most-useful, "
            "--from-run or --streams"
        )
    if "--from-run" in requested and (len(requested) > 1 or here or others["--parts"]):
        raise click.UsageError(
            "--from-run measures nothing: it takes no --bundle, --again, --operators-only, "
            "--parts, --most-useful or --streams"
        )
    for name in ("--streams", "--under-load"):
        if name in requested and (
            len(requested) > 1 or here or others["--parts"] or others["--out"]
        ):
            raise click.UsageError(
                f"{name} writes no profile: it takes no --out, --bundle, --again, "
                "--operators-only, --parts or --most-useful"
            )
    if "--runtime" in requested and (len(requested) > 1 or here):
        raise click.UsageError(
            "--runtime runs whole models: it takes no --bundle, --import, --from-run, --streams, "
            "--under-load, --again, --operators-only or --most-useful"
        )
    if "--import" not in requested and not others["MODEL"]:
        raise click.UsageError("Missing argument 'MODEL'.")
    if "--bundle" in requested and (others["--out"] or here):
        raise click.UsageError(
            "--bundle takes no --out, --again, --operators-only or --most-useful: the board "
            "measures"
        )


def _law_lines(document: Row) -> Iterator[str]:
    for law in document["streams"]:
        factors = ", ".join(f"{factor:g}" for factor in law["slowdown"])
        yield f"# {law['processor']}: {law['operators']} operators, their times added up"
        yield "streams:"
        yield f"  slowdown: [{factors}]"
        yield (
            f"  hand_over: {{latency_s: {law['hand_over_s']:.3g}, "
            f"bandwidth_bytes_per_s: {law['bandwidth_bytes_per_s']:.4g}}}"
        )
        yield "  source: streams"
    yield "# once, under sources:"
    yield "streams:"
    yield "  provenance: measured"
    most = max(len(law["slowdown"]) for law in document["streams"])
    yield f"  title: parapipe profile {document['model']} --streams {most}"


def _bundle_lines(document: Row) -> Iterator[str]:
    for sentence in document["left_out"]:
        print_note(f"not measured: {sentence}")
    yield f"wrote {document['bundle']}: copy it to the board and run python3 measure.py there"


def _report_lines(report: Row, how: str) -> Iterator[str]:
    for sentence in report["notes"]:
        print_note(sentence)
    counts = f"{report['measured']} times {how}, {report['kept']} kept, {report['noisy']} noisy"
    if report["noisy"]:
        counts += f" (spread {report['least_spread']:.0%} to {report['most_spread']:.0%})"
    if report["others"]:
        counts += f"; {report['others']} of other operators stand there too"
    yield f"{report['path']}: {counts}"
