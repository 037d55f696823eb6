"""`parapipe profile`: times of a model's operators, measured here or on a board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option, quiet_option
from parapipe.cli.output import Row, print_document, print_note
from parapipe.cli.progress import progress_shown
from parapipe.cli.verb_options import VerbCommand, options


@click.command(cls=VerbCommand)
@click.argument("model", required=False)
@click.option("--platform", required=True, help="This machine's YAML file, or the board's.")
@options("profile", "out", "again", "operators_only", "parts", "most_useful")
@click.option("--bundle", type=FILE, metavar="DIR", help="Write a folder to measure on a board.")
@click.option("--import", "results", type=FILE, metavar="FILE", help="Import a board's times.")
@options(
    "learn_from_runs", "from_run",
    from_run={"flag": "--from-run", "type": FILE, "metavar": "RUN.json", "multiple": True,
              "default": (), "required": False},
)  # fmt: skip
@options("MapOptions", "dims", "shapes", "rules")
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
    from_run: Sequence[Path],
    quiet: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Measure each distinct operator of MODEL with ONNX Runtime on a platform's processors.

    Each processor's cores get a session of their own. Then the whole of MODEL is run in
    pipelines, and operators share the times of their segments. The profile that is written is found
    by `parapipe map`; what stands in it already is not measured again. For `map --split auto`,
    --parts measures parts of operators as well.
    """
    here = again or operators_only or most_useful
    if results and (model or bundle or here or parts or from_run):
        raise click.UsageError(
            "--import takes no MODEL, --bundle, --again, --operators-only, --parts, --most-useful "
            "or --from-run"
        )
    if from_run and (bundle or here or parts):
        raise click.UsageError(
            "--from-run measures nothing: "
            "it takes no --bundle, --again, --operators-only, --parts or --most-useful"
        )
    if not results and not model:
        raise click.UsageError("Missing argument 'MODEL'.")
    if bundle and (out or here):
        raise click.UsageError(
            "--bundle takes no --out, --again, --operators-only or --most-useful: the board "
            "measures"
        )
    import parapipe

    if bundle:
        left_out = parapipe.write_profile_bundle(str(model), platform, bundle, parts=parts, **given)
        document = {"bundle": str(bundle), "left_out": list(left_out)}
        print_document(document, _bundle, as_json=as_json)
        return
    if results:
        report = parapipe.import_profile(results, platform, out=out)
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
    print_document(report.to_json(), _report, as_json=as_json)


def _bundle(document: Row) -> Iterator[str]:
    for sentence in document["left_out"]:
        print_note(f"not measured: {sentence}")
    yield f"wrote {document['bundle']}: copy it to the board and run python3 measure.py there"


def _report(report: Row) -> Iterator[str]:
    for sentence in report["notes"]:
        print_note(sentence)
    counts = f"{report['measured']} times measured, {report['kept']} kept, {report['noisy']} noisy"
    if report["noisy"]:
        counts += f" (spread {report['least_spread']:.0%} to {report['most_spread']:.0%})"
    if report["others"]:
        counts += f"; {report['others']} of other operators stand there too"
    yield f"{report['path']}: {counts}"
