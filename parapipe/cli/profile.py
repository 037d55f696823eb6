"""`parapipe profile`: times of a model's operators, measured here or on a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option, model_options
from parapipe.cli.output import print_json, print_note, print_text
from parapipe.cli.progress import progress_shown

if TYPE_CHECKING:
    from parapipe.api import Shapes


@click.command()
@click.argument("model", required=False)
@click.option("--platform", required=True, help="This machine's YAML file, or the board's.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The profile.  [default: profiles/PLATFORM/onnxruntime.csv beside the platform's file]",
)
@click.option("--again", is_flag=True, help="Measure again what stands in the profile.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a folder that measures by itself on a board, and measure nothing here.",
)
@click.option(
    "--import",
    "results",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take in what a board has measured; no MODEL is needed.",
)
@model_options
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
def command(
    *,
    model: str | None,
    platform: str,
    out: Path | None,
    again: bool,
    bundle: Path | None,
    results: Path | None,
    dims: Mapping[str, int],
    shapes: Shapes,
    rules: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure each distinct operator of MODEL with ONNX Runtime on a platform's processors.

    Each processor's cores get a session of their own. The profile that is written is found by
    `parapipe map`; what stands in it already is not measured again.
    """
    _check_usage(model, bundle, results, out=out, again=again)
    from parapipe import measuring

    if results:
        report = measuring.import_profile(results, platform, out=out)
    elif bundle:
        left_out = measuring.write_profile_bundle(
            str(model), platform, bundle, dims=dims, shapes=shapes, rules=rules
        )
        _print_bundle(bundle, left_out, as_json=as_json)
        return
    else:
        with progress_shown(quiet=quiet) as progress:
            report = measuring.profile_model(
                str(model),
                platform,
                out=out,
                again=again,
                dims=dims,
                shapes=shapes,
                rules=rules,
                progress=progress,
            )
    _print_report(report.to_json(), as_json=as_json)


def _check_usage(
    model: str | None, bundle: Path | None, results: Path | None, *, out: Path | None, again: bool
) -> None:
    if results and (model or bundle or again):
        raise click.UsageError("--import takes no MODEL, --bundle or --again")
    if not results and not model:
        raise click.UsageError("Missing argument 'MODEL'.")
    if bundle and (out or again):
        raise click.UsageError("--bundle takes no --out or --again: the board measures")


def _print_bundle(bundle: Path, left_out: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"bundle": str(bundle), "left_out": list(left_out)})
        return
    for sentence in left_out:
        print_note(f"not measured: {sentence}")
    print_text(f"wrote {bundle}: copy it to the board and run python3 measure.py there")


def _print_report(report: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    for sentence in report["notes"]:
        print_note(sentence)
    print_text(
        f"{report['path']}: {report['measured']} times measured, {report['kept']} kept, "
        f"{report['noisy']} of all noisy"
    )
