"""`parapipe verify`: checks a plan by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from parapipe.cli.options import json_option
from parapipe.cli.output import Row, print_document
from parapipe.cli.plan_arguments import plan_or_shapes
from parapipe.digits import plain


@click.command()
@plan_or_shapes
@json_option
def command(*, plan: Path, as_json: bool) -> None:
    """Check that a plan is consistent, without knowing how it was made.

    Checks every rule that a runtime relies on, and lists every violation. DIR is a folder that map
    wrote, ID the id or a name of a configuration in it; default: the balanced one. Of a folder of
    several shapes, all placements are checked together.
    """
    import parapipe

    if plan.is_dir():
        shapes = parapipe.verify_shapes(plan).to_json()
        print_document({"folder": plan, **shapes} if not as_json else shapes, _shapes_text,
                       as_json=as_json)  # fmt: skip
        return
    document = parapipe.verify_plan(plan).to_json()
    print_document({"plan": plan, **document} if not as_json else document, _text, as_json=as_json)


def _shapes_text(document: Row) -> Iterator[str]:
    rows, shapes = document["configurations"], [each["name"] for each in document["shapes"]]
    yield f"{document['folder']}: keeps every rule"
    yield f"model       {document['model']} on {document['platform']}"
    yield f"shapes      {', '.join(shapes)}"
    yield f"placements  {len(rows)} of all shapes together"


def _text(summary: Row) -> Iterator[str]:
    from parapipe.api.checked import stages_title

    stages = stages_title(summary["stages"], summary["replicas"])
    frame = "pattern" if summary["models"] else "frame"
    fps, sustained_fps = summary["throughput_fps"], 1 / summary["sustained_period_s"]
    energy, board = (plain(summary[key] * 1e3) for key in ("energy_j", "board_energy_j"))
    yield f"{summary['plan']}: keeps every rule"
    yield f"model       {summary['model']} on {summary['platform']}"
    yield f"stages      {stages}"
    yield f"operators   {summary['operators']} for {summary['nodes']} ONNX nodes"
    transfer_mb = summary["transfer_bytes"] / 1e6
    yield f"transfers   {summary['transfers']}, {transfer_mb:.2f} MB per {frame}"
    yield f"latency     {plain(summary['latency_s'] * 1e3)} ms"
    yield f"throughput  {plain(fps)} {frame}s/s; {plain(sustained_fps)} sustained"
    yield f"energy      {energy} mJ per {frame}; {board} with the board's idle power"
    for each in summary["models"]:
        count = f"{each['frames']} in a pattern"
        rate = f"{plain(each['throughput_fps'])} frames/s, {plain(each['latency_s'] * 1e3)} ms"
        yield f"of {each['name']}: {rate}; {count}"
