"""`parapipe fit`: coefficients from measurements, with what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Columns, Row, Shown, print_document, print_text, text_table


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _rate_text(per_unit_s: float) -> str:
    return f"{1e-9 / per_unit_s:.2f}" if per_unit_s else "-"


ERRORS: Columns = {
    "processor": "processor",
    " predicted": "predicted",
    " median": lambda row: _percent(row["median"]),
    " mean": lambda row: _percent(row["mean"]),
    " largest": lambda row: _percent(row["largest"]),
    "median of each": lambda row: ", ".join(
        f"{name} {_percent(error)}" for name, error in row["groups"].items()
    ),
}
KINDS: Columns = {
    "processor": "processor",
    "kind": "kind",
    "type": "dtype",
    " signatures": "signatures",
    " µs": lambda row: f"{row['per_operator_s'] * 1e6:.0f}",
    " G steps/s": lambda row: _rate_text(row["per_step_s"]),
    " GB/s": lambda row: _rate_text(row["per_byte_s"]),
    " error": lambda row: _percent(row["mean_error"]),
    "neighbours": lambda row: "yes" if row["neighbours"] else "",
}
_SOURCE = """\
# once, under sources:
{}:
  provenance: fitted
  title: parapipe fit {} {}"""


@click.group()
def command() -> None:
    """Fit times, transfers, power or slowdowns to measurements, and show the errors of the fit."""


@command.command()
@click.argument("profile", type=FILE)
@click.option("--out", type=FILE, help="JSON file to write, too.")
@json_option
def times(*, profile: Path, out: Path | None, as_json: bool) -> None:
    """Fit times to PROFILE, a CSV file, and leave out each network in turn.

    The file NAME.rows.csv beside NAME.csv says which rows belong to which network. Without it, a
    tenth of the operators is left out at a time. A record written with --out NAME.fit.json is named
    wherever a time comes from the fit.
    """
    import parapipe

    print_document(parapipe.fit_times(profile, out=out).to_json(), _time_tables, as_json=as_json)
    if out is not None and not as_json:
        print_text(f"\nwrote {out}")


def _time_tables(document: Row) -> Shown:
    what = "blocks" if document["left_out"] == "network" else "operators"
    yield (
        f"{document['profile']}: errors of {what}, each {document['left_out']} left out in turn "
        "and predicted from the others"
    )
    yield text_table(ERRORS, document["errors"])
    yield "\nrates, and mean errors of what they were fitted to"
    yield text_table(KINDS, document["kinds"])


@command.command()
@click.argument("samples", type=FILE)
@json_option
def power(*, samples: Path, as_json: bool) -> None:
    """Fit static and dynamic power to SAMPLES, a CSV file.

    Its columns are processor, frequency_hz, voltage_v, power_w and idle_power_w; utilisation
    (default: 1) and network are optional. Prints the power section of each processor for the
    platform's YAML file.
    """
    import parapipe

    fits = [fit.to_json() for fit in parapipe.fit_power(samples)]
    document = {"samples": str(samples), "processors": fits}
    print_document(document, _power_lines, as_json=as_json)


def _power_lines(document: Row) -> Iterator[str]:
    for fit in document["processors"]:
        yield (
            f"# {fit['processor']}: {fit['samples']} samples at {fit['operating_points']} "
            f"operating points, {_errors(fit['errors'])}"
        )
        if fit["left_out"]:
            yield f"# each {fit['left_out']} left out in turn: {_errors(fit['left_out_errors'])}"
        yield "power:"
        yield f"  alpha_w_per_v2_hz: {fit['alpha_w_per_v2_hz']:.4g}"
        yield f"  beta_w_per_v: {fit['beta_w_per_v']:.4g}"
        yield "  utilisation: {default: 1}"
        yield "  source: power-fit"
    yield _SOURCE.format("power-fit", "power", Path(document["samples"]).name)


@command.command()
@click.argument("samples", type=FILE)
@json_option
def transfers(*, samples: Path, as_json: bool) -> None:
    """Fit latency and bandwidth of links to SAMPLES, a CSV file of timed transfers.

    Its columns are from, to, size_bytes and time_s; network, from_hz and to_hz are optional. A line
    without size_bytes only shows how much faster a tensor moves at other clocks. Prints the links,
    at the highest clocks, for the platform's YAML file.
    """
    import parapipe

    fits = [fit.to_json() for fit in parapipe.fit_transfers(samples)]
    print_document({"samples": str(samples), "links": fits}, _link_lines, as_json=as_json)


def _link_lines(document: Row) -> Iterator[str]:
    fits = document["links"]
    for fit in fits:
        yield f"# {fit['sender']} to {fit['receiver']}: {_link_errors_text(fit)}"
    yield "links:"
    for fit in fits:
        bandwidth = fit["bandwidth_bytes_per_s"]
        sized = f", bandwidth_bytes_per_s: {bandwidth:.4g}" if bandwidth else ""
        yield (
            f"  - {{from: {fit['sender']}, to: {fit['receiver']}, "
            f"latency_s: {fit['latency_s']:.3g}{sized}, source: transfers}}"
        )
    yield _SOURCE.format("transfers", "transfers", Path(document["samples"]).name)


@command.command()
@click.argument("samples", type=FILE)
@click.option("--platform", required=True, help="The board's YAML file.")
@json_option
def slowdowns(*, samples: Path, platform: str, as_json: bool) -> None:
    """Make the table of slowdowns out of SAMPLES, a CSV file of co-runs.

    `measure.py` of a bundle writes it with --co-runs or --under-load. Prints the section co_run for
    the platform's YAML file.
    """
    import parapipe

    fits = [fit.to_json() for fit in parapipe.fit_slowdowns(samples, platform)]
    title = f"parapipe fit slowdowns {samples.name}"
    print_document(
        {"samples": str(samples), "slowdowns": fits},
        lambda document: slowdown_lines(document["slowdowns"], title),
        as_json=as_json,
    )


def slowdown_lines(fits: Sequence[Row], title: str) -> Iterator[str]:
    """Yield the section of a table of slowdowns, and its source."""
    yield "co_run:"
    yield "  slowdowns:"
    for fit in fits:
        classes = {"class": fit["operator_class"], "busy_class": fit["busy_class"]}
        keys = "".join(f", {key}: {name}" for key, name in classes.items() if name)
        yield (
            f"    - {{processor: {fit['processor']}, busy: [{', '.join(fit['busy'])}]{keys}, "
            f"factor: {fit['factor']:.4g}, spread: {fit['spread']:.3g}}} "
            f"# {fit['samples']} measured"
        )
    yield "  source: co-runs"
    yield "# once, under sources:"
    yield "co-runs:"
    yield "  provenance: measured"
    yield f"  title: {title}"


def _link_errors_text(fit: Row) -> str:
    text = (
        f"{fit['samples']} transfers, median error {_percent(fit['median_error'])}, at worst "
        f"{_percent(fit['largest_error'])}"
    )
    if fit["left_out_error"] is not None:
        text += f"; {_percent(fit['left_out_error'])} with each network left out in turn"
    if fit["speed_up"] != 1:
        remark = "" if fit["speed_up_known"] else " (that of another pair: not measured)"
        text += f"; at the highest clocks {fit['speed_up']:.2f} of the time{remark}"
    return text


def _errors(errors: Mapping[str, float] | None) -> str:
    if errors is None:
        return "error unknown: no more samples than coefficients, so that any fit them"
    return f"median error {_percent(errors['median'])}, at worst {_percent(errors['largest'])}"
