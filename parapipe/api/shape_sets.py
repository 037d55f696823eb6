"""Shapes of a model as they are asked for: their sizes, their steps, and which are buckets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Note
from parapipe.errors import ArgumentError, ModelError
from parapipe.files.checked_arguments import FromZero, Must
from parapipe.files.mistakes import listed
from parapipe.search.options import MapOptions, flag, option_traits

if TYPE_CHECKING:
    from parapipe.documents.shapes_schema import Sizes
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.several_shapes.buckets import Bucket

_Shape = Annotated[tuple[FromZero, ...], Must("whole numbers of at least 0", lax=True)]
_Sizes = Mapping[str, FromZero | _Shape | tuple[str, _Shape]]
ShapeSets = Annotated[
    Mapping[str, _Sizes],
    Must(
        "values of dimensions and shapes of inputs by the name of each shape, as in "
        "{'prefill': {'sequence': 512}, 'decode': {'input_ids': (1, 1)}}"
    ),
]
Mix = Annotated[
    Mapping[str, FromZero],
    Must("whole numbers of at least 0 by shape, as in {'prefill': 1, 'decode': 200}"),
]
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def check_shapes(shape_sets: ShapeSets, options: MapOptions) -> None:
    """Refuse shapes without a good name, and options that are for one shape."""
    odd = [f"'{name}'" for name in shape_sets if not _NAME.fullmatch(name)]
    if odd:
        raise ArgumentError(
            f"map_shapes: names of shapes have letters, digits, '-' and '_' only, and not as "
            f"{listed(odd)}"
        )
    if not shape_sets:
        raise ArgumentError(
            "map_shapes: no shape is given, as a mix wants them: name some, as in "
            "{'prefill': {'sequence_length': 512}}, --shape-set prefill:sequence_length=512 or "
            "--dim sequence_length=128,512"
        )
    reasons = {name: each.not_of_sets for name, each in option_traits().items()}
    changed = [f"{flag(name)} ({reasons[name]})" for name in options.changed() if reasons[name]]
    if changed:
        raise ArgumentError(f"map_shapes: several shapes take no {listed(changed)}")


def options_of_shape(options: MapOptions, sizes: Mapping[str, Sizes]) -> MapOptions:
    """Return the options of one shape: numbers are dimensions, everything else shapes."""
    dims = {name: each for name, each in sizes.items() if isinstance(each, int)}
    shapes = {name: each for name, each in sizes.items() if not isinstance(each, int)}
    return replace(
        options,
        dims={**(options.dims or {}), **dims} or None,
        shapes={**(options.shapes or {}), **shapes} or None,
        draws=0,
    )


def notes_by_shape(names: Iterable[str], note: Note) -> dict[str, Note]:
    """Return for each shape what hands notes of it on, its name in front."""

    def tell(name: str, sentence: str) -> None:
        note(f"{name}: {sentence}")

    return {name: partial(tell, name) for name in names}


def read_shapes(
    model: str | Path, shape_sets: ShapeSets, options: MapOptions, notes: Mapping[str, Note]
) -> dict[str, OperatorGraph]:
    """Read a model in all of its shapes, so that a wrong one is found before the first search.

    Raises
    ------
    ModelError
        It cannot be read in one of them, which the message names.
    """
    from parapipe.api.load import load_graph

    graphs = {}
    for name, sizes in shape_sets.items():
        read = options_of_shape(options, sizes).where(lambda option: option.reads_model)
        try:
            graphs[name] = load_graph(model, **read, digests=True, weights=False, note=notes[name])
        except ModelError as error:
            raise ModelError(f"shape '{name}': {error}") from error
    return graphs


def buckets_and_steps(
    shape_sets: ShapeSets, mix: Mapping[str, int]
) -> tuple[dict[str, Bucket], dict[str, int]]:
    """Return the buckets, none if shapes differ in more than one dimension, and the steps."""
    from parapipe.several_shapes.buckets import buckets_of

    dimension = bucket_dimension(shape_sets)
    sizes = {n: size for n, each in shape_sets.items() for size in each.values()}
    by_size = {int(name): count for name, count in mix.items() if name.isascii() and name.isdigit()}
    if dimension and by_size and len(by_size) == len(mix) and not {*mix} <= {*shape_sets}:
        buckets = buckets_of({n: s for n, s in sizes.items() if isinstance(s, int)}, by_size)
        return buckets, {name: each.requests for name, each in buckets.items()}
    unknown = [f"'{name}'" for name in mix if name not in shape_sets]
    if unknown:
        raise ArgumentError(
            f"map_shapes: the mix names {listed(unknown)}, and the shapes are "
            f"{listed([*shape_sets])}"
        )
    steps = {name: mix.get(name, 0 if mix else 1) for name in shape_sets}
    if not any(steps.values()):
        raise ArgumentError("map_shapes: the mix has no step of any shape: give one at least 1")
    if not dimension:
        return {}, steps
    whole = {size: steps[n] for n, size in sizes.items() if isinstance(size, int) and steps[n]}
    return buckets_of({n: s for n, s in sizes.items() if isinstance(s, int)}, whole), steps


def bucket_dimension(shape_sets: ShapeSets) -> str | None:
    """Return the one dimension that tells shapes apart; None if there is more to tell."""
    keys = {tuple(each) for each in shape_sets.values()}
    values = [size for each in shape_sets.values() for size in each.values()]
    if len(shape_sets) < 2 or len(keys) != 1 or not all(isinstance(s, int) for s in values):
        return None
    (names,) = keys
    return names[0] if len(names) == 1 and len({*values}) == len(values) else None


def shapes_command(
    model: str | Path,
    platform: str | Path,
    options: MapOptions,
    shape_sets: ShapeSets,
    mix: Mapping[str, int],
) -> str:
    """Return the command as a line for a shell."""
    from parapipe.documents.drawing import map_command
    from parapipe.graph.user_shapes import shape_text

    words = [map_command(model, platform, options)]
    for name, sizes in shape_sets.items():
        each = ",".join(
            f"{key}={size if isinstance(size, int) else shape_text(size)}"
            for key, size in sizes.items()
        )
        words += ["--shape-set", shlex.quote(f"{name}:{each}")]
    if mix:
        words += ["--mix", shlex.quote(",".join(f"{key}={count}" for key, count in mix.items()))]
    return " ".join(words)
