"""What front.json says of several models on one board."""

from __future__ import annotations

from parapipe.files.record import Figure, PositiveFigure, Row


class DemandRow(Row):
    """A model, and what is asked for it."""

    name: str
    """Name, with which its operators' and tensors' names begin."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    model_sha256: str
    """Hexadecimal digest of the model file."""
    frames: int
    """Frames of it in a pattern."""
    rate_fps: PositiveFigure
    """Frames a second that are asked."""
    pattern_fps: PositiveFigure
    """Frames a second that a pattern gives: at least those."""
    deadline_s: PositiveFigure | None
    """Most latency that is asked; null if any will do."""
    priority: PositiveFigure
    """What its latency counted in comparison to others'."""


class SharingRow(Row):
    """By how much all rates could grow together, in one way to share processors: by loads."""

    rate_factor: PositiveFigure
    """1: the rates as they are asked, and no more."""
    processors: dict[str, tuple[str, ...]]
    """Processors that each model may use."""


class SeveralRow(Row):
    """Several models on one board."""

    period_s: PositiveFigure
    """Seconds in which a pattern repeats: a common period of the rates, and that of every row."""
    models: tuple[DemandRow, ...]
    """In the order of their operators: by priority, then by deadline, then as they were given."""
    shared: PositiveFigure
    """By how much all rates could grow together with processors shared, whatever the latency: by
    loads; never below any of the ways that follow."""
    bound: PositiveFigure
    """No pattern lets all rates grow by more, however long it is: proven, by loads."""
    own_processors: SharingRow | None
    """The best with processors of its own for each model, each frame assigned by itself; null if
    there are too few or too many of them, or some run no model whole."""
    in_turn: SharingRow
    """One model after the other on all processors, each with its best throughput."""
    one_each: SharingRow | None
    """The best with a single processor for each model, which several may share; null if no
    processor runs some model whole."""


class ServedRow(Row):
    """What a model gets."""

    latency_s: PositiveFigure
    """From when a frame comes to its last end, of the frame of a pattern that takes longest."""
    come_s: tuple[float, ...]
    """When its frames come, in seconds after a pattern begins: in equal steps."""
    utilisation: Figure
    """Share of its turns that frames take if the pattern repeats as fast as it can."""
    random_p99_s: Figure | None
    """99 of 100 frames are through within this time if they come at random times, at the asked rate
    on average, and the pattern repeats as fast as it can; null if more and more frames wait."""


class GrowthRow(Row):
    """What the models get of a configuration, each by its name."""

    rate_factor: PositiveFigure
    """By how much all rates could grow together, with this order of work: at most the bound."""
    contended_rate_factor: PositiveFigure | None
    """The same while processors slow each other down at the memory; null if the platform does not
    say how much."""
    power_w: PositiveFigure
    """Watts of the used processors at the asked rates."""
    models: dict[str, ServedRow]
    """What each gets at the asked rates."""
