"""The export target `timetable`: when each operator of a plan starts and ends, as CSV."""

import csv
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.exported import Exported
from parapipe.plan.schema import Plan


def export_plan(plan: Plan, destination: Path | None) -> Exported:
    """Write one line for each operator."""
    if destination is None:
        raise ExportError("the target timetable makes a file: name it")
    rows = [
        (number, processor.name, at.operator, at.start_s, at.end_s)
        for number, stage in enumerate(plan.stages, start=1)
        for processor in stage.processors
        for at in processor.operators
    ]
    with destination.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("stage", "processor", "operator", "start_s", "end_s"))
        table.writerows(rows)
    size_bytes = destination.stat().st_size
    return Exported("timetable", (destination,), size_bytes, (f"operators  {len(rows)}",))
