"""Writes the tables of accuracy-of-fits.md from the records beside the shipped profiles.

python docs/accuracy_of_fits.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from parapipe.cost.left_out import ProcessorErrors
from parapipe.cost.measured_source import FitRecord, stored_record
from parapipe.cost.profile import shipped_profiles

PAGE = Path(__file__).with_name("accuracy-of-fits.md")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    (profile,) = shipped_profiles("amlogic-a311d")
    record = stored_record(profile)
    if record is None:
        raise SystemExit(f"no record of a fit to {profile.name} as it is: run parapipe fit times")
    return {"blocks": "\n".join(_blocks(record)), "networks": "\n".join(_networks(record))}


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


def _blocks(record: FitRecord) -> Iterator[str]:
    yield "| processor | blocks | median | mean | largest | median, shared operators as measured |"
    yield "|---|---:|---:|---:|---:|---:|"
    for e in record.errors:
        shares = (e.median, e.mean, e.largest, e.priced_median)
        yield f"| {e.processor} | {e.predicted} | {' | '.join(map(_percent, shares))} |"


def _networks(record: FitRecord) -> Iterator[str]:
    yield f"| network left out | {' | '.join(e.processor for e in record.errors)} |"
    yield "|---|" + "---:|" * len(record.errors)
    for network in sorted({name for e in record.errors for name in e.groups}):
        yield f"| {network} | {' | '.join(_cell(e, network) for e in record.errors)} |"


def _cell(errors: ProcessorErrors, network: str) -> str:
    return _percent(errors.groups[network]) if network in errors.groups else ""


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
