"""Configurations with the figures that a reader is to see of them."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.formats.figure_table import SHOWN_FIELDS
from parapipe.formats.front import ConfigurationRow
from parapipe.formats.shown import medians_of, shown_values


def shown_rows(rows: Sequence[ConfigurationRow]) -> tuple[list[ConfigurationRow], frozenset[str]]:
    """Return configurations with what is shown of drawn figures, and which of these are medians."""
    plain = [row.model_dump(include={*SHOWN_FIELDS, "intervals", "medians"}) for row in rows]
    shown = {key: shown_values(plain, key) for key in SHOWN_FIELDS}
    made = [
        row.model_copy(update={key: values[i] for key, values in shown.items()})
        for i, row in enumerate(rows)
    ]
    return made, medians_of(plain)
