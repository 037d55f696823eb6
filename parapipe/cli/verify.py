"""`parapipe verify`: checks a plan by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import print_json, print_text


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@json_option
def command(*, plan: Path, as_json: bool) -> None:
    """Check a plan by itself.

    Every rule that a runtime relies on is checked, and every breach is listed.
    """
    from parapipe import api

    document = api.verify_plan(plan).to_json()
    if as_json:
        print_json(document)
        return
    for line in _lines(plan, document):
        print_text(line)


def _lines(plan: Path, summary: Mapping[str, Any]) -> list[str]:
    stages = " │ ".join("+".join(names) for names in summary["stages"])
    sustained_fps = 1 / summary["sustained_period_s"]
    energy_mj, board_mj = (summary[key] * 1e3 for key in ("energy_j", "board_energy_j"))
    return [
        f"{plan}: keeps every rule",
        f"model       {summary['model']} on {summary['platform']}",
        f"stages      {stages}",
        f"operators   {summary['operators']} for {summary['nodes']} ONNX nodes",
        f"transfers   {summary['transfers']}, {summary['transfer_bytes'] / 1e6:.2f} MB per frame",
        f"latency     {summary['latency_s'] * 1e3:.1f} ms",
        f"throughput  {summary['throughput_fps']:.2f} frames/s; {sustained_fps:.2f} sustained",
        f"energy      {energy_mj:.1f} mJ per frame; {board_mj:.1f} with the board's idle power",
    ]
