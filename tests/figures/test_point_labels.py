"""The front as a figure: its texts stand apart, within the axes, and the legend in the picture."""

from itertools import combinations
from random import Random

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from parapipe.documents.front_schema import ConfigurationRow, IntervalsRow
from parapipe.figures.front import front_axes, plot_front

NAMES = ("hybrid-L", "hybrid-T", "pipe-only", "para-only", "balanced", "sequential", "robust-E")
LONG = ("a-processor-with-a-long-name-alone", "most-efficient", "another-long-one-alone")


def rows_like(row: ConfigurationRow, seed: int) -> list[ConfigurationRow]:
    """Return configurations here and there, many close to each other, some with long names."""
    random = Random(seed)
    near = (random.uniform(0.01, 1), random.uniform(1, 100))
    made = []
    for number in range(random.choice((3, 12, 60))):
        close = random.random() < 0.5
        latency_s = near[0] * (1 + random.random() / 50) if close else random.uniform(0.01, 1)
        fps = near[1] * (1 + random.random() / 50) if close else random.uniform(1, 100)
        names = random.sample(NAMES, random.choice((1, 1, 2))) if number < 8 else []
        if number == 2:
            names = list(LONG)
        changed = {
            "id": f"c{number:02d}", "names": tuple(names), "latency_s": latency_s,
            "throughput_fps": fps, "pareto": number < 3 or random.random() < 0.8,
            "intervals": None,
            "kind": random.choice(("sequential", "pipe-only", "para-only", "hybrid",
                                   "interleaved", "replicated")),
        }  # fmt: skip
        made.append(row.model_copy(update=changed))
    return made


def check(ax) -> None:
    """No two texts overlap, none leaves the picture, and labels stay within the axes."""
    figure = ax.figure
    figure.draw_without_rendering()
    extents = [Text.get_window_extent(each) for each in ax.texts]  # without their lines
    for one, other in combinations(extents, 2):
        assert not one.overlaps(other)
    inside = ax.get_window_extent()
    for box in extents:
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1
    legend, whole = ax.get_legend().get_window_extent(), figure.bbox
    assert whole.x0 <= legend.x0 <= legend.x1 <= whole.x1
    assert whole.y0 <= legend.y0 <= legend.y1 <= whole.y1
    assert not legend.overlaps(ax.xaxis.get_tightbbox())


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.nightly)
                                               for s in range(2, 40))])  # fmt: skip
def test_texts_of_a_front_stand_apart_on_axes_of_any_kind(branchy_front, seed) -> None:
    rows = rows_like(branchy_front.document.configurations[0], seed)
    for ax in (Figure().add_subplot(), Figure((9, 7), layout="constrained").add_subplot(),
               front_axes(rows)):  # fmt: skip
        plot_front(rows, ax)
        check(ax)


def test_a_legend_under_one_of_several_axes_stays_in_its_place(branchy_front) -> None:
    figure = Figure((12, 9))
    axes = figure.subplots(2, 2)
    places = [ax.get_position() for ax in axes.flat]
    rows = branchy_front.document.configurations
    plot_front(rows, axes[0, 0])
    figure.draw_without_rendering()
    legend = axes[0, 0].get_legend().get_window_extent()
    below = axes[1, 0].get_window_extent()
    assert legend.y0 >= below.y1
    assert [ax.get_position().bounds for ax in axes.flat][1:] == [p.bounds for p in places[1:]]


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_small_picture_cuts_off_no_label_and_prints_none_over_another(
    branchy_front, layout
) -> None:
    rows = [
        row.model_copy(update={"names": (*row.names, f"named-{row.id}")})
        for row in rows_like(branchy_front.document.configurations[0], 1)
    ]
    ax = Figure((4, 3), layout=layout).add_subplot()
    ax.set_title("a model with a name that is rather long on a platform")
    plot_front(rows, ax)
    check(ax)
    bars = [each for each in ax.figure.axes if each is not ax]
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title, *(each.yaxis.label for each in bars)):
        box, whole = label.get_window_extent(), ax.figure.bbox
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, label.get_text()
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, label.get_text()


def in_doubt(row, number):
    """Return a configuration whose stated figures are better than all of its draws."""
    changed = {
        "id": f"c{number}", "latency_s": 1e-3 * number, "period_s": 1e-3, "throughput_fps": 1e3,
        "intervals": IntervalsRow(latency_s=(2e-3, 9e-3), period_s=(2e-3, 9e-3),
                                  energy_j=(0.5 * row.energy_j, 2 * row.energy_j)),
        "medians": row.medians.model_copy(
            update={"latency_s": 3e-3 * number, "period_s": 4e-3 / number}
        ),
        "pareto": True, "pareto_latency_throughput": number == 1,
    }  # fmt: skip
    return row.model_copy(update=changed)


def test_points_are_medians_and_axes_say_so_where_stated_figures_are_outside(branchy_front) -> None:
    (row, *_) = branchy_front.document.configurations
    rows = [in_doubt(row, number) for number in (1, 2)]
    ax = front_axes(rows)
    plot_front(rows, ax)
    assert ax.get_xlabel() == "latency, median of draws (ms)"
    assert ax.get_ylabel() == "throughput, median of draws (frames/s)"
    across, up = zip(*(point for each in ax.collections for point in each.get_offsets()),
                     strict=True)  # fmt: skip
    (stairs,) = ax.lines
    for found in ((sorted(across), sorted(up)), stairs.get_data()):
        assert found[0] == pytest.approx([3.0, 6.0])
        assert found[1] == pytest.approx([250.0, 500.0])
    assert "by the stated costs" in ax.get_legend().get_title().get_text()
