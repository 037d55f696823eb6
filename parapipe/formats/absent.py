"""Why configurations are absent from a front, as it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parapipe.files.listing import together

_ALONE = "-alone"


def absent_texts(absent: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence without its end for what is absent, as in `no para-only configuration: …`.

    Processors whose reasons differ in their names alone are named together.
    """
    alone = {
        name.removesuffix(_ALONE): text for name, text in absent.items() if name.endswith(_ALONE)
    }
    shown = {names[0]: (names, text) for names, text in together(alone).items()}
    for kind, reason in absent.items():
        if not kind.endswith(_ALONE):
            yield f"no {kind} configuration: {reason}"
        elif found := shown.get(kind.removesuffix(_ALONE)):
            names, text = found
            kinds = [f"{name}{_ALONE}" for name in names]
            listed = " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
            yield f"no {listed} configuration: {text}"
