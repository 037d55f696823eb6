"""`parapipe fit`: coefficients from measurements, with what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_text

Fit = Mapping[str, Any]


@click.group()
def command() -> None:
    """Fit power to measurements, and say how far off the fit is."""


@command.command()
@click.argument("samples", type=click.Path(path_type=Path))
@json_option
def power(*, samples: Path, as_json: bool) -> None:
    """Fit static and dynamic power to SAMPLES, a CSV file.

    Its columns are processor, frequency_hz, voltage_v, power_w and idle_power_w; utilisation (1 if
    left out) and network may be there. What is printed is the power section of each processor for
    the platform's YAML file.
    """
    from parapipe import api

    fits = [fit.to_json() for fit in api.fit_power(samples)]
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


def _errors(errors: Mapping[str, float]) -> str:
    median, largest = (f"{errors[key] * 100:.1f} %" for key in ("median", "largest"))
    return f"median error {median}, at worst {largest}"
