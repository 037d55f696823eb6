"""`parapipe profile`: times of a model's operators, measured here or on a board."""

from __future__ import annotations

from collections.abc import Iterator
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
@options("profile", "out", "again")
@click.option("--bundle", type=FILE, metavar="DIR", help="Write a folder to measure on a board.")
@click.option("--import", "results", type=FILE, metavar="FILE", help="Take in a board's times.")
@options("MapOptions", "dims", "shapes", "rules")
@quiet_option
@json_option
def command(
    *,
    model: str | None,
    platform: str,
    out: Path | None,
    again: bool,
    bundle: Path | None,
    results: Path | None,
    quiet: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - click checks
) -> None:
    """Measure each distinct operator of MODEL with ONNX Runtime on a platform's processors.

    Each processor's cores get a session of their own. The profile that is written is found by
    `parapipe map`; what stands in it already is not measured again.
    """
    if results and (model or bundle or again):
        raise click.UsageError("--import takes no MODEL, --bundle or --again")
    if not results and not model:
        raise click.UsageError("Missing argument 'MODEL'.")
    if bundle and (out or again):
        raise click.UsageError("--bundle takes no --out or --again: the board measures")
    import parapipe

    if bundle:
        left_out = parapipe.write_profile_bundle(str(model), platform, bundle, **given)
        document = {"bundle": str(bundle), "left_out": list(left_out)}
        print_document(document, _bundle, as_json=as_json)
        return
    if results:
        report = parapipe.import_profile(results, platform, out=out)
    else:
        with progress_shown(quiet=quiet) as progress:
            report = parapipe.profile(
                str(model), platform, out=out, again=again, progress=progress, **given
            )
    print_document(report.to_json(), _report, as_json=as_json)


def _bundle(document: Row) -> Iterator[str]:
    for sentence in document["left_out"]:
        print_note(f"not measured: {sentence}")
    yield f"wrote {document['bundle']}: copy it to the board and run python3 measure.py there"


def _report(report: Row) -> Iterator[str]:
    for sentence in report["notes"]:
        print_note(sentence)
    counts = f"{report['measured']} times measured, {report['kept']} kept"
    yield f"{report['path']}: {counts}, {report['noisy']} of all noisy"
