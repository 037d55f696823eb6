"""Figures: what they draw is what the plan says, axes name their units, and names stay text."""

import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, product

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import parapipe
from parapipe.documents.comparison import Pair
from parapipe.errors import FrontError
from parapipe.figures.axes import own_axes as own_axes_of_package
from parapipe.figures.axes import picture
from parapipe.figures.comparison import plot_comparison
from parapipe.figures.front import WIDE, front_axes, plot_front
from parapipe.figures.palette import COLOURS, HATCHES, IDLE, looks
from parapipe.front.configurations import configuration_html
from tests.cases.branchy import HOSTILE, branchy


def own_axes():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def hostile_front(tmp_path_factory):
    path = branchy(tmp_path_factory.mktemp("model") / '$x_1$ <b>"&.onnx', HOSTILE)
    return parapipe.map(
        path, "amlogic-a311d", mapper="heft", cache=False, jobs=1, interleave="none"
    )


@pytest.fixture(scope="module")
def staged(branchy_front):
    """A configuration with more than one stage."""
    return next(made for made in branchy_front if len(made.stages) > 1)


def test_every_figure_draws_on_the_axes_it_is_given_and_names_units(branchy_front, staged) -> None:
    units = {
        branchy_front.plot: (r"\(ms\)$", r"\(frames/s\)$"),
        branchy_front.plot_energy: ("configuration", r"energy per frame \(.* mJ\)$"),
        staged.plot_gantt: (r"\(ms\)$", "processor"),
        staged.plot_utilisation: (r"\(%\)$", "processor"),
    }
    for plot, (across, up) in units.items():
        ax = own_axes()
        assert plot(ax) is ax
        assert re.search(across, ax.get_xlabel()), ax.get_xlabel()
        assert re.search(up, ax.get_ylabel()), ax.get_ylabel()


def test_a_figure_of_its_own_gives_the_same_bytes_twice(branchy_front, staged) -> None:
    for plot in (branchy_front.plot, branchy_front.plot_energy, staged.plot_gantt,
                 staged.plot_utilisation, staged.plot_network):  # fmt: skip
        assert picture(plot()) == picture(plot())


def test_the_gantt_chart_has_each_operator_at_its_time_in_the_row_of_its_processor(staged) -> None:
    ax = staged.plot_gantt(own_axes())
    colours = {to_hex(look.colour): name for name, look in looks(
        processor.name for processor in staged.platform.processors).items()}  # fmt: skip
    drawn = {
        (colours[to_hex(bars.get_facecolor()[0])], round(path.vertices[:, 0].min(), 6))
        for bars in ax.collections
        if isinstance(bars, PolyCollection) and to_hex(bars.get_facecolor()[0]) in colours
        for path in bars.get_paths()
    }
    begin_s, planned = 0.0, set()
    for stage in staged.plan().stages:
        planned |= {
            (processor.name, round(1e3 * (begin_s + at.start_s), 6))
            for processor in stage.processors
            for at in processor.operators
        }
        begin_s += stage.time_s
    assert drawn == planned
    used = {processor.name for stage in staged.stages for processor in stage.processors}
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        processor.name for processor in staged.platform.processors if processor.name in used
    ]


def test_a_title_is_short_and_ends_within_its_picture(branchy_front, staged) -> None:
    assert "/" in branchy_front.document.model
    long = staged.drawing + " │ ".join(["processor[1-9]"] * 12)
    for made in (staged, staged.model_copy(update={"drawing": long})):
        for plot in (made.plot, made.plot_utilisation, made.plot_network):
            ax = plot()
            FigureCanvasAgg(ax.figure).draw()
            title, whole = ax.title.get_window_extent(), ax.figure.bbox
            assert ax.get_title().startswith("branchy on amlogic-a311d: ")
            assert whole.x0 <= title.x0 <= title.x1 <= whole.x1
            assert whole.y0 <= title.y0 <= title.y1 <= whole.y1


def test_the_gantt_chart_has_a_line_for_each_transfer(branchy_front) -> None:
    for made in branchy_front:
        lines = [line for line in made.plot_gantt(own_axes()).lines if line.get_color() == "0.25"]
        assert len(lines) == len(made.plan().transfers)


def boxes(ax):
    """Return the legend's box and that of the axes, as drawn."""
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    ax.figure.draw(renderer)
    return ax.get_legend().get_window_extent(renderer), ax.get_window_extent(renderer), renderer


def test_no_legend_covers_what_is_drawn_nor_labels_nor_leaves_the_picture(
    branchy_front, staged
) -> None:
    pairs = [
        Pair(f"net{i}", "", "latency", predicted, measured)
        for i, (predicted, measured) in enumerate(product((1e-3, 2e-3, 3e-3), repeat=2))
    ]
    compared = own_axes_of_package(4.2, 4.4)
    plot_comparison(pairs, "latency", compared)
    made = (branchy_front.plot(), branchy_front.plot_energy(), staged.plot_network(), compared)
    for ax in made:
        legend, inside, renderer = boxes(ax)
        assert not legend.overlaps(inside)
        for axis in (ax.xaxis, ax.yaxis):
            labels = axis.get_tightbbox(renderer) if ax.axison else None
            assert labels is None or not legend.overlaps(labels)
        whole = ax.figure.bbox
        assert whole.x0 <= legend.x0 <= legend.x1 <= whole.x1
        assert whole.y0 <= legend.y0 <= legend.y1 <= whole.y1


@pytest.mark.parametrize("beyond", [0, 1, 5])
def test_the_front_leaves_room_for_its_text_whatever_is_not_drawn(branchy_front, beyond) -> None:
    rows = branchy_front.document.configurations
    slowest = max(row.latency_s for row in rows if row.pareto)
    (hidden, *_) = (row for row in rows if row.names and not row.pareto)
    kept = [row for row in rows if row.pareto or row.latency_s <= slowest]
    far = [
        hidden.model_copy(update={"latency_s": 2 * slowest, "intervals": None})
        for _ in range(beyond)
    ]
    ax = front_axes([*kept, *far])
    ax.set_title("a model on a platform")
    plot_front([*kept, *far], ax)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    whole = ax.figure.bbox
    for part in (*ax.figure.axes, ax.get_legend()):
        box = part.get_tightbbox(renderer)
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1


def test_configurations_far_beyond_the_front_are_named_beside_the_legend(branchy_front) -> None:
    rows = branchy_front.document.configurations
    slowest = max(row.latency_s for row in rows if row.pareto)
    (first, *_) = (row for row in rows if row.names and not row.pareto)
    far = first.model_copy(update={"latency_s": 2 * slowest, "intervals": None})
    ax = own_axes()
    plot_front([far if row is first else row for row in rows], ax)
    title = ax.get_legend().get_title().get_text()
    assert f"not drawn: {', '.join(far.names)}: {2e3 * slowest:.1f} ms" in title
    legend, inside, _ = boxes(ax)
    assert not legend.overlaps(inside)


@pytest.mark.parametrize(("times", "scale"), [(WIDE, "linear"), (WIDE + 0.01, "log")])
def test_latencies_far_apart_stand_on_a_logarithmic_axis(branchy_front, times, scale) -> None:
    rows = [row for row in branchy_front.document.configurations if row.pareto]
    least = min(row.latency_s for row in rows)
    slowest = max(rows, key=lambda row: row.latency_s)
    assert slowest.latency_s < WIDE * least
    slow = slowest.model_copy(update={"latency_s": times * least, "intervals": None})
    ax = own_axes()
    plot_front([slow if row is slowest else row for row in rows], ax)
    assert ax.get_xscale() == scale
    least_ms, most_ms = ax.get_xlim()
    assert least_ms < 1e3 * least < 1e3 * slow.latency_s < most_ms
    if scale == "log":
        ax.figure.canvas.draw()
        shown = [label.get_text() for label in ax.get_xticklabels()]
        factors = {f"{factor * 10.0**power:g}" for factor in (1, 2, 5) for power in range(-6, 3)}
        assert set(shown) <= factors


def test_utilisation_is_the_share_of_the_period_that_operators_take(staged) -> None:
    ax = staged.plot_utilisation(own_axes())
    used = [processor for stage in staged.stages for processor in stage.processors]
    widths = [
        bar.get_width()
        for bar in ax.patches
        if to_hex(bar.get_facecolor()) not in (to_hex(IDLE), to_hex("0.35"))
    ]
    assert widths == pytest.approx([100 * each.busy_s / staged.period_s for each in used])


def test_bars_of_energy_are_as_high_as_energies_are_to_the_reference(branchy_front) -> None:
    named = [row for row in branchy_front.document.configurations if row.names]
    (one,) = (row for row in named if "gpu-alone" in row.names)
    ax = branchy_front.plot_energy(own_axes(), reference="gpu-alone")
    tops = {}
    for bar in ax.patches:
        at = round(bar.get_x() + bar.get_width() / 2)
        tops[at] = max(tops.get(at, 0), bar.get_y() + bar.get_height())
    assert [tops[i] for i in range(len(named))] == pytest.approx(
        [row.energy_j / one.energy_j for row in named]
    )


def test_energies_are_not_normalised_to_what_is_not_there(branchy_front) -> None:
    with pytest.raises(FrontError, match="no configuration 'hybrid-X' in this front"):
        branchy_front.plot_energy(own_axes(), reference="hybrid-X")


def test_the_network_has_a_box_for_each_operator_and_subgraph_and_strips_for_stages(staged) -> None:
    ax = staged.plot_network(own_axes())
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    operators = [box for box in boxes if box.get_height() == pytest.approx(0.62)]
    strips = [box for box in boxes if box.get_height() == pytest.approx(0.24)]
    subgraphs = len(boxes) - len(operators) - len(strips)
    assert len(operators) == len(staged.graph.operators)
    assert subgraphs == len({number for stage in staged.stages for number in stage.subgraphs})
    assert len(strips) == sum(
        len(stage.processors) * len(stage.subgraphs) for stage in staged.stages
    )


def test_processors_differ_in_colour_and_in_hatch() -> None:
    for one, other in combinations(range(len(COLOURS)), 2):
        assert COLOURS[one] != COLOURS[other]
        assert HATCHES[one] != HATCHES[other]


def test_names_that_are_no_mathematics_and_no_markup_are_drawn_as_they_are(hostile_front) -> None:
    for made in hostile_front:
        for plot in (made.plot_gantt, made.plot_utilisation, made.plot_network):
            assert b"$x_1$ &lt;b&gt;" in picture(plot())
    assert b"$x_1$ &lt;b&gt;" in picture(hostile_front.plot())


class Tags(HTMLParser):
    """Names of elements, and of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.pictures: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.pictures += [value or "" for name, value in attrs if name == "src"]


def test_a_front_and_a_configuration_show_themselves_in_jupyter_escaped(hostile_front) -> None:
    for shown in (hostile_front, hostile_front.configurations[0]):
        tags = Tags(shown._repr_html_())
        assert tags.names <= {"div", "p", "b", "br", "img", "details", "summary", "table", "thead",
                              "tbody", "tr", "th", "td"}  # fmt: skip
        assert tags.attributes <= {"alt", "src", "border", "class", "style"}
        (picture,) = tags.pictures
        kind, _, data = picture.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert b64decode(data).startswith(b"<?xml")


def test_the_table_in_jupyter_has_units_and_all_configurations(branchy_front) -> None:
    text = branchy_front._repr_html_()
    for row in branchy_front.document.configurations:
        assert f"<td>{row.id}</td>" in text
        assert f"<td>{row.latency_s * 1e3:.4g}</td>" in text
    assert "<th>latency, ms</th>" in text


def test_jupyter_shows_medians_where_the_picture_does(branchy_front) -> None:
    first = branchy_front.configurations[0]
    low, high = (2 * first.latency_s, 4 * first.latency_s)
    intervals = first.intervals.model_copy(update={"latency_s": (low, high)})
    medians = first.medians.model_copy(update={"latency_s": 3 * first.latency_s})
    row = first.model_copy(update={"intervals": intervals, "medians": medians})
    others = branchy_front.document.configurations[1:]
    text = configuration_html(row, [row, *others])
    assert f"~{3e3 * first.latency_s:.1f} ms" in text
    assert "~: median of draws" in text
    document = branchy_front.document.model_copy(update={"configurations": (row, *others)})
    table = replace(branchy_front, document=document)._repr_html_()
    assert "<th>latency, ms, median of draws</th>" in table
    assert f"<td>{3e3 * first.latency_s:.4g}</td>" in table
