"""`parapipe fit`: coefficients from measurements, with what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_table, print_text, text_table

if TYPE_CHECKING:
    from rich.table import Table

Fit = Mapping[str, Any]


@click.group()
def command() -> None:
    """Fit times, transfers or power to measurements, and say how far off the fit is."""


@command.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="JSON file to write as well.")
@json_option
def times(*, profile: Path, out: Path | None, as_json: bool) -> None:
    """Fit times to PROFILE, a CSV file, and leave out each network in turn.

    Networks are told by the rows beside it: NAME.rows.csv beside NAME.csv. Without them a tenth of
    the operators at a time is left out. A record written with --out NAME.fit.json is named wherever
    a time is taken from the fit.
    """
    from parapipe import fitting

    document = fitting.fit_times(profile, out=out).to_json()
    if as_json:
        print_json(document)
        return
    print_text(_headline(document))
    print_table(_errors_table(document))
    print_text("\nrates, and mean errors of what they were fitted to")
    print_table(_kinds_table(document))
    if out is not None:
        print_text(f"\nwrote {out}")


def _headline(document: Fit) -> str:
    what = "blocks" if document["left_out"] == "network" else "operators"
    return (
        f"{document['profile']}: errors of {what}, each {document['left_out']} left out in turn "
        "and predicted from the others"
    )


def _errors_table(document: Fit) -> Table:
    table = text_table("processor", " predicted", " median", " mean", " largest", "median of each")
    for row in document["errors"]:
        shares = (_percent(row[key]) for key in ("median", "mean", "largest"))
        groups = ", ".join(f"{name} {_percent(e)}" for name, e in row["groups"].items())
        table.add_row(row["processor"], f"{row['predicted']}", *shares, groups)
    return table


def _kinds_table(document: Fit) -> Table:
    table = text_table(
        "processor", "kind", "type", " signatures", " µs", " G steps/s", " GB/s", " error",
        "neighbours",
    )  # fmt: skip
    for row in document["kinds"]:
        table.add_row(
            row["processor"],
            row["kind"],
            row["dtype"],
            f"{row['signatures']}",
            f"{row['per_operator_s'] * 1e6:.0f}",
            _rate(row["per_step_s"]),
            _rate(row["per_byte_s"]),
            _percent(row["mean_error"]),
            "yes" if row["neighbours"] else "",
        )
    return table


def _rate(per_unit_s: float) -> str:
    return f"{1e-9 / per_unit_s:.2f}" if per_unit_s else "-"


@command.command()
@click.argument("samples", type=click.Path(path_type=Path))
@json_option
def power(*, samples: Path, as_json: bool) -> None:
    """Fit static and dynamic power to SAMPLES, a CSV file.

    Its columns are processor, frequency_hz, voltage_v, power_w and idle_power_w; utilisation (1 if
    left out) and network may be there. What is printed is the power section of each processor for
    the platform's YAML file.
    """
    from parapipe import fitting

    fits = [fit.to_json() for fit in fitting.fit_power(samples)]
    if as_json:
        print_json({"samples": str(samples), "processors": fits})
        return
    print_text("\n".join(_power_lines(fits, samples)))


def _power_lines(fits: Sequence[Fit], samples: Path) -> Iterator[str]:
    for fit in fits:
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
    yield "# once, under sources:"
    yield "power-fit:"
    yield "  provenance: fitted"
    yield f"  title: parapipe fit power {samples.name}"


@command.command()
@click.argument("samples", type=click.Path(path_type=Path))
@json_option
def transfers(*, samples: Path, as_json: bool) -> None:
    """Fit latency and bandwidth of links to SAMPLES, a CSV file of timed transfers.

    Its columns are from, to, size_bytes and time_s; network, from_hz and to_hz may be there. A line
    without size_bytes tells only how much faster a tensor moves at other clocks. What is printed
    are the links, at the highest clocks, for the platform's YAML file.
    """
    from parapipe import fitting

    fits = [fit.to_json() for fit in fitting.fit_transfers(samples)]
    if as_json:
        print_json({"samples": str(samples), "links": fits})
        return
    print_text("\n".join(_link_lines(fits, samples)))


def _link_lines(fits: Sequence[Fit], samples: Path) -> Iterator[str]:
    for fit in fits:
        yield f"# {fit['sender']} to {fit['receiver']}: {_link_errors(fit)}"
    yield "links:"
    for fit in fits:
        bandwidth = fit["bandwidth_bytes_per_s"]
        sized = f", bandwidth_bytes_per_s: {bandwidth:.4g}" if bandwidth else ""
        yield (
            f"  - {{from: {fit['sender']}, to: {fit['receiver']}, "
            f"latency_s: {fit['latency_s']:.3g}{sized}, source: transfers}}"
        )
    yield "# once, under sources:"
    yield "transfers:"
    yield "  provenance: fitted"
    yield f"  title: parapipe fit transfers {samples.name}"


def _link_errors(fit: Fit) -> str:
    told = (
        f"{fit['samples']} transfers, median error {_percent(fit['median_error'])}, at worst "
        f"{_percent(fit['largest_error'])}"
    )
    if fit["left_out_error"] is not None:
        told += f"; {_percent(fit['left_out_error'])} with each network left out in turn"
    if fit["speed_up"] != 1:
        known = "" if fit["speed_up_known"] else " (that of another pair: not measured)"
        told += f"; at the highest clocks {fit['speed_up']:.2f} of the time{known}"
    return told


def _errors(errors: Mapping[str, float] | None) -> str:
    if errors is None:
        return "error unknown: no more samples than coefficients, so that any fit them"
    return f"median error {_percent(errors['median'])}, at worst {_percent(errors['largest'])}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
