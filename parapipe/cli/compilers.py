"""`parapipe compilers`: compilers of NPU vendors, and what they make of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from parapipe.cli.options import FILE, json_option
from parapipe.cli.output import Columns, Shown, print_document, print_text, text_table
from parapipe.cli.verb_options import VerbCommand, options

REQUIRED: dict[str, Any] = {"required": True, "default": None, "show_default": False}
LIST: Columns = {
    "name": "name",
    "what": "title",
    "targets": lambda row: ", ".join(row["targets"]),
    "cycles": lambda row: "yes" if row["prices"] else "no",
    "version": lambda row: row["version"] or "-",
    "where": lambda row: row["problem"] or row["python"],
}
ROWS: Columns = {
    "operator": "operator",
    "on": "target",
    "type": "dtype",
    " cycles": lambda row: "-" if row["cycles"] is None else f"{row['cycles']:,}",
    " kB": lambda row: _kilobytes(row["traffic_bytes"]),
    "nodes": lambda row: ", ".join(row["nodes"]) or _part_text(row["part_of"]),
}


def _kilobytes(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else f"{size_bytes / 1e3:,.0f}"


def _part_text(part_of: str) -> str:
    return f"(for {part_of})" if part_of else "-"


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, name and try compilers of NPU vendors, and compile a model."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the compilers, where they are installed, or why they cannot be used."""
    import parapipe

    rows = [asdict(row) for row in parapipe.list_compilers()]
    print_document(
        {"compilers": rows},
        lambda document: [text_table(LIST, document["compilers"])],
        as_json=as_json,
    )


@command.command(cls=VerbCommand)
@click.argument("name")
@options("use_compiler", "python", python=REQUIRED | {"metavar": "PATH"})
@json_option
def use(*, name: str, python: Path, as_json: bool) -> None:
    """Keep in your settings which Python has the compiler NAME."""
    import parapipe

    row = asdict(parapipe.use_compiler(name, python=python))
    print_document(
        row, lambda _: [f"{name} {row['version']} is used from {row['python']}"], as_json=as_json
    )


@command.command(cls=VerbCommand)
@click.argument("name")
@options("check_compiler", "target", "compile_time_s")
@json_option
def check(*, name: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Compile a small model by the compiler NAME, and compare what it simulates."""
    import parapipe

    print_document(
        asdict(parapipe.check_compiler(name, **given)), lambda each: [_check_text(each)],
        as_json=as_json,
    )  # fmt: skip


def _check_text(each: dict[str, Any]) -> str:
    return (
        f"{each['name']} {each['version']} compiles for {each['target']}, and simulates with a "
        f"cosine of {each['cosine']:.6f} to ONNX's outputs"
    )


@command.command()
@json_option
def clear(*, as_json: bool) -> None:
    """Delete all that compilers have made from the cache."""
    import parapipe

    deleted = parapipe.clear_compiled()
    print_document({"deleted": deleted}, lambda _: [f"deleted {deleted} results"], as_json=as_json)


@command.command("compile", cls=VerbCommand)
@click.argument("model")
@options(
    "compile_model", "compiler", "target", "precision", "calibration", "out", "compile_time_s",
    compiler=REQUIRED | {"metavar": "NAME"}, target=REQUIRED | {"metavar": "CHIP"},
    calibration={"metavar": "DIR|FILE.npz", "type": FILE},
)  # fmt: skip
@json_option
def compile_(*, model: str, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - click checks
    """Compile the whole of MODEL for an NPU: what runs where, cycles, memory.

    Cycles are those of the NPU's clock; - means that the compiler does not price the row, not that
    it costs nothing.
    """
    import parapipe

    segment = parapipe.compile_model(model, **given)
    document = {
        **asdict(segment),
        "artefact": str(segment.artefact),
        "log": str(segment.log) if segment.log else None,
    }
    print_document(document, _segment_text, as_json=as_json)
    if given["out"] and not as_json:
        print_text(f"wrote {given['out']}")


def _segment_text(document: dict[str, Any]) -> Shown:
    rows: Sequence[dict[str, Any]] = document["rows"]
    yield text_table(ROWS, rows)
    yield ""
    cycles = sum(row["cycles"] or 0 for row in rows)
    unpriced = sum(row["cycles"] is None for row in rows)
    yield f"{cycles:,} cycles in {len(rows) - unpriced} rows; {unpriced} rows are not priced"
    weights, internal = (_kilobytes(document[f"{key}_bytes"]) for key in ("weight", "internal"))
    yield f"memory of the NPU: {weights} kB of weights, {internal} kB of activations"
    for node in document["on_cpu"]:
        reason = node["reason"] or "the compiler gives no reason"
        yield f"on the CPU: {node['node']} ({node['operator_type']}): {reason}"
    for note in document["notes"]:
        yield f"note: {note}"
    yield f"{document['tool']} {document['version']}: {document['artefact']}"
