"""`parapipe evaluate`: what a given mapping takes, without a search."""

from __future__ import annotations

from typing import Any

import click

from parapipe.cli.front_table import coverage_lines
from parapipe.cli.options import json_option
from parapipe.cli.output import Columns, Row, Shown, print_document, print_note, text_table
from parapipe.cli.verb_options import VerbCommand, options
from parapipe.digits import plain


@click.command(cls=VerbCommand)
@click.argument("model")
@click.option("--platform", required=True, help="Name of a shipped platform, or path of a YAML.")
@options(
    "evaluate", "assignment", "order", "points", "granularity", "view", "profiles",
    order={"metavar": "LETTERS"}, points={"metavar": "MHZ…"},
)  # fmt: skip
@options("MapOptions", "precision", "dims", "shapes", "rules", "at_most")
@json_option
def command(*, model: str, platform: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Predict latency, period and energy of a given mapping of MODEL."""
    if (given["assignment"] is None) == (given["order"] is None):
        raise click.UsageError("give either --assignment FILE or --order LETTERS")
    import parapipe

    document = parapipe.evaluate(model, platform, note=print_note, **given)
    print_document(document.model_dump(mode="json", by_alias=True), _text, as_json=as_json)


def _text(document: Row) -> Shown:
    stages = [{**stage, "number": i} for i, stage in enumerate(document["stages"], start=1)]
    columns: Columns = {
        " stage": "number",
        " time\nms": lambda stage: f"{stage['time_s'] * 1e3:.2f}",
        " opera-\ntors": "operators",
        "processors": lambda stage: (
            " + ".join(stage["processors"]) + " (shared)" * bool(stage["shared_processor"])
        ),
        "first operator…": "first_operator",
        "last operator…": "last_operator",
    }
    yield text_table(columns, stages)
    yield ""
    beside = f"without input, {_ms(document, 'input_s')}, and output, {_ms(document, 'output_s')}"
    yield f"latency     {_ms(document, 'latency_s')}; {beside}"
    longest = f"longest stage {_ms(document, 'longest_stage_s')}"
    period = f"{_ms(document, 'period_s')}, {document['throughput_fps']:.2f} fps"
    yield f"period      {period}; {longest}"
    sustained = f"{_ms(document, 'sustained_period_s')}, {1 / document['sustained_period_s']:.2f}"
    yield f"sustained   {sustained} fps with one thread per processor and queues of two slots"
    if shared := document["shared_processor"]:
        yield f"shared      {', '.join(shared)} works for a frame in several stages"
    yield f"energy      {_mj(document)}"
    yield f"in sequence {_mj(document['sequential'])}: one frame at a time"
    if free := document.get("co_run"):
        alone = f"latency {_ms(free, 'free_latency_s')}, period {_ms(free, 'free_period_s')}"
        yield f"co-runs     {alone} if processors did not slow each other down"
    if ends := document["intervals"]:
        doubts = ", ".join(f"{key[:-2]} {_doubt_text(document, key)}" for key in ends)
        same = ", co-runs by the same factor in all" if free else ""
        yield f"doubt       {doubts} in nine of ten draws of the costs{same}"
    yield from coverage_lines(document["coverage"])


def _doubt_text(document: Row, key: str) -> str:
    """Say how near a figure stays: with ± if it is in the middle, else from where to where."""
    from parapipe.api.checked import shown_figure

    figure = shown_figure(document, key)
    assert figure is not None
    if figure.even:
        return f"±{100 * figure.half_width:.0f} %"
    unit = "mJ" if key == "energy_j" else "ms"
    return f"{plain(figure.low * 1e3)} to {plain(figure.high * 1e3)} {unit}"


def _ms(document: Row, key: str) -> str:
    return f"{document[key] * 1e3:.2f} ms"


def _mj(row: Row) -> str:
    board = f"{row['board_energy_j'] * 1e3:.1f} with the board's idle power"
    return f"{row['energy_j'] * 1e3:.1f} mJ per frame; {board}"
