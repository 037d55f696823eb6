"""The report in a real browser: draws, answers to clicks and keys, and asks nobody for anything."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

import parapipe
from parapipe.documents.front_folder import FrontFolder
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.documents.shown import medians_of, shown_figure
from parapipe.figures.page import CLOUD
from parapipe.figures.page import page as page_of
from parapipe.plan.schema import Plan
from tests.cases.branchy import HOSTILE, branchy
from tests.cases.replicas import ONE_STAGE, TWO_STAGES, replicated_front

PARTS = (
    "front", "summary", "gantt", "memory", "processors", "network", "sources", "table", "again",
)  # fmt: skip
ON_TOP = """
  const at = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  document.getElementById("front").scrollIntoView({block: "center", behavior: "instant"});
  return [...document.querySelectorAll("#front .point[data-id]")].filter((point) =>
    document.elementFromPoint(...at(point.getBoundingClientRect())) === point);
"""


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    path = branchy(tmp_path_factory.mktemp("model") / "branchy.onnx")
    return parapipe.map(path, "amlogic-a311d", cache=False, jobs=1, interleave="none")


@pytest.fixture(scope="module")
def report(front, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    front.write_report(path)
    return path


@pytest.fixture
def page(opened, report):
    return opened(report)


def ids_by(front, figure: str) -> list[str]:
    rows = front.document.configurations
    return [row.id for row in sorted(rows, key=lambda row: (getattr(row, figure), row.id))]


def test_every_part_is_drawn_and_the_console_stays_empty(page, front) -> None:
    assert all(page.run("return document.getElementById(arguments[0]).children.length", part)
               for part in PARTS)  # fmt: skip
    assert len(page.all("#front .point[data-id]")) == len(front)
    assert len(page.all("#table tbody tr")) == len(front)
    page.key("s", "t", "b", "x", Keys.ESCAPE)
    assert page.console() == []


def test_the_browser_asks_for_nothing_but_the_file(page, report) -> None:
    page.key("s", "b", "t")
    requests = [
        message["params"]["request"]["url"].partition("#")[0]
        for entry in page.driver.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert {url for url in requests if not url.startswith(("data:", "about:"))} == {report.as_uri()}
    assert page.run("return performance.getEntriesByType('resource').length") == 0


def test_the_policy_keeps_the_page_from_the_network_and_from_foreign_scripts(page) -> None:
    blocked = page.driver.execute_async_script(
        """
        const done = arguments[arguments.length - 1], blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => {
          blocked.push(event.effectiveDirective);
          if (blocked.length === 3) done(blocked.sort());
        });
        fetch("https://example.org/").catch(() => null);
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        const script = document.createElement("script");
        script.textContent = "window.hit = true";
        document.body.append(image, script);
        """
    )
    assert blocked == ["connect-src", "img-src", "script-src-elem"]
    assert page.run("return window.hit") is None


def test_a_click_on_a_point_changes_the_schedule(page, front) -> None:
    (before,) = page.shown
    drawn = page.run("return document.querySelector('#gantt svg').outerHTML")
    point = next(each for each in page.run(ON_TOP) if each.get_attribute("data-id") != before)
    wanted = point.get_attribute("data-id")
    page.click(point)
    assert page.shown == [wanted]
    assert page.run("return document.querySelector('#gantt svg').outerHTML") != drawn
    assert page.run("return location.hash") == f"#{wanted}"
    lanes = page.run(
        "return [...document.querySelectorAll('#gantt .row-name')].map((e) => e.textContent)"
    )
    assert lanes == [
        each.name for stage in front[wanted].plan().stages for each in stage.processors
    ]
    assert page.console() == []


def test_a_schedule_has_a_bar_for_each_operator_that_takes_time_and_a_line_for_each_transfer(
    opened, report, front
) -> None:
    for made in front:
        plan = made.plan()
        page = opened(report, f"#{made.id}")
        timed = [
            at
            for stage in plan.stages
            for each in stage.processors
            for at in each.operators
            if at.end_s > at.start_s
        ]
        assert len(page.all("#gantt .bar")) == len(timed)
        assert len(page.all("#gantt .passage")) == len(plan.transfers)


def test_the_memory_over_a_period_has_a_curve_for_each_memory_and_its_peak(
    opened, report, front
) -> None:
    page = opened(report, "#c01")
    (curve,) = page.all("#memory .memory-used")
    assert curve.is_displayed()
    page.run("arguments[0].dispatchEvent(new PointerEvent('pointerenter'))",
             page.all("#memory .memory-peak")[0])  # fmt: skip
    assert page.text("#tooltip .title").endswith(" in shared memory assumed")
    for alive in front["c01"].memories[0].alive[:12]:
        assert alive.name in page.text("#tooltip")
    assert "is assumed" in page.text("#memory-note")


def test_two_configurations_stand_side_by_side(page) -> None:
    (first,) = page.shown
    other = next(each for each in page.run(ON_TOP) if each.get_attribute("data-id") != first)
    second = other.get_attribute("data-id")
    page.click(other, holding=Keys.SHIFT)
    assert page.shown == [first, second]
    boxes = page.run("return [...document.querySelectorAll('#gantt .panel')].map((e) => "
                     "e.getBoundingClientRect().toJSON())")  # fmt: skip
    assert boxes[0]["top"] == boxes[1]["top"]
    assert boxes[0]["right"] <= boxes[1]["left"]
    page.key("x")
    assert page.shown == [second, first]
    page.key(Keys.ESCAPE)
    assert page.shown == [second]


def test_the_address_says_what_is_shown(opened, report) -> None:
    assert opened(report, "#c02,c01").shown == ["c02", "c01"]
    assert opened(report, "#c99,<b>").shown == opened(report).shown


def test_arrow_keys_go_along_the_front(opened, report, front) -> None:
    order = ids_by(front, "latency_s")
    page = opened(report, f"#{order[0]}")
    seen = []
    for _ in order:
        seen += page.shown
        page.key(Keys.ARROW_RIGHT)
    assert seen == order
    page.key(Keys.ARROW_LEFT)
    assert page.shown == [order[-2]]


def test_up_and_down_go_by_throughput_where_the_front_has_the_focus(opened, report, front) -> None:
    order = ids_by(front, "throughput_fps")
    page = opened(report, f"#{order[0]}")
    page.key(Keys.ARROW_UP)
    assert page.shown == [order[0]]  # the page scrolls
    page.run("document.getElementById('front').focus()")
    page.key(Keys.ARROW_UP)
    assert page.shown == [order[1]]
    page.key(Keys.ARROW_DOWN)
    assert page.shown == [order[0]]


def test_a_row_of_the_table_selects_and_a_heading_sorts(page, front) -> None:
    page.click(page.all("#table th button")[2])
    listed = page.run(
        "return [...document.querySelectorAll('#table tbody tr')].map((e) => e.dataset.id)"
    )
    rows = front.to_json()["configurations"]
    shown = {row["id"]: shown_figure(row, "latency_s").value for row in rows}
    assert listed == sorted(shown, key=shown.__getitem__, reverse=True)  # equal ones as listed
    page.click(page.all("#table tbody tr")[0])
    assert page.shown == [listed[0]]


def test_frames_in_a_row_repeat_the_schedule(opened, report, front) -> None:
    made = next(made for made in front if len(made.stages) > 1)
    page = opened(report, f"#{made.id}")
    once = len(page.all("#gantt .bar"))
    page.click(page.all("#views button")[1])
    assert once < len(page.all("#gantt .bar")) <= once * (len(made.stages) + 1)
    assert page.text("#gantt .stage-name") == f"frame {len(made.stages) + 1}"


@pytest.fixture(scope="module", params=[ONE_STAGE, TWO_STAGES])
def replicas(tmp_path_factory, request):
    """A front of rough costs with replicas, and its report."""
    folder = tmp_path_factory.mktemp("replicas")
    front = replicated_front(folder, request.param)
    front.write_report(folder / "report.html")
    return front, folder / "report.html"


def test_replicas_take_turns_on_frames_and_are_as_busy_everywhere(opened, replicas) -> None:
    front, report = replicas
    for row in (each for each in front if each.kind == "replicated"):
        page = opened(report, f"#{row.id}")
        (turns,) = (stage for stage in row.stages if stage.in_turn)
        names = [each.name for each in turns.processors]
        for view in (0, 1):
            page.click(page.all("#views button")[view])
            busy = dict(zip(page.texts("#gantt .row-name"), page.texts("#gantt .row-more"),
                            strict=True))  # fmt: skip
            assert len({busy[name] for name in names}) == 1
        shares = dict(zip(page.texts("#processors .who"), page.texts("#processors .said b"),
                          strict=False))  # fmt: skip
        assert names[0] in shares
        assert all(busy[name].startswith("computes ") for name in names)
        if len(row.stages) == 1:
            assert {busy[name] for name in names} <= {"computes >99\u202f%", "computes 100\u202f%"}
        # in the steady state, each has frames of its own, and one at a time
        tops = {top for top, _, _ in page.bars()}
        assert len(tops) == len(row.processors)
        for top in tops:
            spans = sorted((left, right) for at, left, right in page.bars() if at == top)
            assert all(a[1] <= b[0] + 0.01 for a, b in pairwise(spans))
        assert page.console() == []


def test_figures_outside_their_intervals_are_not_shown(opened, replicas) -> None:
    front, report = replicas
    page = opened(report)
    plain = [row.model_dump() for row in front]
    for row in front:
        texts = page.run(CELLS, row.id)
        for key, text in zip(("latency_s", "throughput_fps", "energy_j"), texts, strict=True):
            figure = shown_figure(row.model_dump(), key)
            assert figure is not None
            scale = 1.0 if key == "throughput_fps" else 1e3
            medians = key in medians_of(plain)
            assert text.startswith("~") == medians
            value = figure.median if medians else figure.stated
            assert float(text.lstrip("~")) == pytest.approx(value * scale, rel=1e-3)
    assert not re.search(r"±[0-9]{3}", page.run("return document.body.textContent"))


CELLS = """
  const row = document.querySelector(`#table tr[data-id="${arguments[0]}"]`);
  return [2, 3, 4].map((at) => row.children[at].textContent);
"""


def interleaved(made):
    """Return a configuration of one stage and its plan, a new frame entering while another runs.

    The period ends in the middle of the longest operator of the second half.
    """
    plan = made.plan()
    every = [at for each in plan.stages[0].processors for at in each.operators]
    late = [at for at in every if at.start_s + at.end_s > plan.predicted.latency_s]
    cut = max(late, key=lambda at: at.end_s - at.start_s)
    period_s = (cut.start_s + cut.end_s) / 2
    document = json.loads(plan.to_bytes())
    document["predicted"]["period_s"] = period_s
    for processor in document["stages"][0]["processors"]:
        for at in processor["operators"]:
            lag = int(at["start_s"] / period_s)
            at |= {
                "lag": lag,
                "start_s": at["start_s"] - lag * period_s,
                "end_s": at["end_s"] - lag * period_s,
            }
    for each in document["transfers"]:
        each.pop("start_s", None)
        each.pop("end_s", None)
        each.pop("occupies", None)
    changed = {"period_s": period_s, "stages": 2 * made.stages}
    row = ConfigurationRow(**dict(made)).model_copy(update=changed)
    return row, Plan.model_validate_json(json.dumps(document))


def test_operators_of_several_frames_take_turns_and_are_cut_at_the_edges(
    opened, front, tmp_path
) -> None:
    made = front["para-only"]
    row, plan = interleaved(made)
    assert len({at.lag for each in plan.stages[0].processors for at in each.operators}) == 2
    assert any(
        at.end_s > row.period_s for each in plan.stages[0].processors for at in each.operators
    )
    rows = tuple(row if each.id == row.id else each for each in front.document.configurations)
    document = front.document.model_copy(update={"configurations": rows})
    plans = {each.id: plan if each.id == row.id else each.plan() for each in front}
    path = tmp_path / "report.html"
    path.write_bytes(page_of(FrontFolder(document, plans, front.solve_log())))
    page = opened(path, f"#{row.id}")
    edges = (
        "return [...document.querySelectorAll('#gantt .bar')].map((e) => "
        "[e.x.baseVal.value, e.x.baseVal.value + e.width.baseVal.value])"
    )
    once = page.run(edges)
    taking_time = [at for each in made.plan().stages[0].processors for at in each.operators]
    assert len(once) == sum(at.end_s > at.start_s for at in taking_time)
    left, right = min(start for start, _ in once), max(end for _, end in once)
    names = "return [...document.querySelectorAll('#gantt .stage-name')].map((e) => e.textContent)"
    assert page.run(names) == ["period 1", "period 2"]
    page.click(page.all("#views button")[1])
    # one period; two frames entered before it, and what these do in it is drawn, but paler
    assert page.run(names) == ["frame 3 enters"]
    shades = (
        "return [...document.querySelectorAll('#gantt .bar')]"
        ".map((e) => +e.getAttribute('fill-opacity'))"
    )
    assert max(page.run(shades)) == 1 > min(page.run(shades))
    bars = page.run(edges)
    assert min(start for start, _ in bars) == pytest.approx(left, abs=0.01)
    assert max(end for _, end in bars) == pytest.approx(right, abs=0.01)
    wrapped = [at for at in taking_time if at.start_s < row.period_s < at.end_s]
    assert len(bars) == len(once) + len(wrapped)  # of these, the end and the start
    assert page.console() == []


def test_latencies_far_apart_stand_on_a_logarithmic_scale(opened, front, tmp_path) -> None:
    rows = [row for row in front.document.configurations if row.pareto]
    slow = max(rows, key=lambda row: row.latency_s)
    far = slow.model_copy(update={"latency_s": 40 * slow.latency_s, "intervals": None})
    every = tuple(far if row is slow else row for row in front.document.configurations)
    document = front.document.model_copy(update={"configurations": every})
    path = tmp_path / "report.html"
    plans = {each.id: each.plan() for each in front}
    path.write_bytes(page_of(FrontFolder(document, plans, front.solve_log())))
    page = opened(path)
    shown = "return [...document.querySelectorAll('#front .tick[text-anchor=middle]')]"
    ticks = [float(text) for text in page.run(f"{shown}.map((e) => e.textContent)")]
    assert len(ticks) > 2
    assert {round(after / before, 6) for before, after in pairwise(ticks)} <= {2, 2.5}
    assert page.console() == []


def test_draws_of_what_is_selected_are_dots_around_it(opened, report, front) -> None:
    row, drawn = front["para-only"], front.drawn
    page = opened(report, f"#{row.id}")
    dots = page.run("return document.querySelectorAll('#front .cloud').length")
    assert 0.5 * CLOUD < dots <= CLOUD
    told = page.run("return JSON.parse(document.getElementById('data').textContent).clouds")
    i = front.configurations.index(row)
    first = [round(each[i, 0] * 1e6) for each in (drawn.latency_s, drawn.period_s)]
    assert told[row.id][0] == first
    assert page.console() == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_follows_the_system_until_it_is_switched(opened, report, dark) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    light = {False: "rgb(253, 253, 251)", True: "rgb(20, 22, 26)"}
    page = opened(report, dark=dark)
    assert page.run(background) == light[dark]
    page.click(page.all("#theme")[0])
    assert page.run(background) == light[not dark]


def test_the_page_fits_1280_pixels(opened, report) -> None:
    for address in ("", "#c01,c02"):
        page = opened(report, address)
        assert page.run("return document.documentElement.scrollWidth") <= 1280


def test_a_hovered_operator_is_named_and_lit_in_the_network_too(page, front) -> None:
    page.run("arguments[0].dispatchEvent(new PointerEvent('pointerenter'))",
             page.all("#gantt .bar")[0])  # fmt: skip
    names = {operator.name for operator in front.configurations[0].plan().operators}
    assert page.text("#tooltip .title") in names
    assert len(page.all("#network .lit")) == 1


@pytest.mark.parametrize(
    ("model", "platform"),
    [("one", "amlogic-a311d"), ("one", "bst-a1000"), ("branchy", "bst-a1000")],
)
def test_small_fronts_and_nominal_platforms_are_drawn_with_numbers_only(
    opened, tmp_path, model, platform
) -> None:
    path = branchy(tmp_path / "m.onnx", joins=2 if model == "branchy" else 0)
    front = parapipe.map(
        path, platform, mapper="heft", cache=False, jobs=1, note=lambda _: None, interleave="none"
    )
    front.write_report(tmp_path / "report.html")
    for made in front:
        page = opened(tmp_path / "report.html", f"#{made.id},{front.configurations[0].id}")
        page.key("s")
        wrong = page.run(
            "return [...document.querySelectorAll('body *')].flatMap((element) => "
            "[...element.attributes, ...(element.children.length ? [] : [element.firstChild])]"
            ".map((each) => each && (each.value ?? each.data) || '')"
            ".filter((text) => element.id !== 'data' && element.tagName !== 'SCRIPT' && "
            "/NaN|undefined|Infinity|\\[object/.test(text)))"
        )
        assert wrong == []
        assert page.console() == []


def test_hostile_names_are_text_and_nothing_else(opened, tmp_path) -> None:
    path = branchy(tmp_path / "a<img src=x onerror='window.hit=1'>\"`${1}.onnx", HOSTILE)
    front = parapipe.map(path, "amlogic-a311d", cache=False, jobs=1, interleave="none")
    front.write_report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    assert path.stem in page.text("h1")
    assert path.stem in page.text("title")
    said = set()
    for box in page.all("#network rect[data-op]"):
        page.run("arguments[0].dispatchEvent(new PointerEvent('pointerenter'))", box)
        said.add(page.text("#tooltip .title"))
    assert said == {f"{name}{i}" for name in HOSTILE for i in range(2)}
    assert page.all("img") == []
    assert len(page.all("script")) == 2
    assert page.run("return window.hit") is None
    assert page.console() == []


def test_noisy_times_are_counted_with_their_spread_where_there_are_any(
    opened, page, front, tmp_path
) -> None:
    told = "measured, noisy: 3 (big 2, gpu 1), 13 % of the time; rounds spread by 8 % to 31 %."
    assert "noisy" not in page.text("#sources")
    front.write(tmp_path / "front")
    path = tmp_path / "front" / "front.json"
    document = json.loads(path.read_text())
    document["coverage"]["noisy"] = {
        "count": 3, "operators": 0.1, "time": 0.125, "least_spread": 0.08, "most_spread": 0.31,
    }  # fmt: skip
    for name, count in (("big", 2), ("gpu", 1)):
        document["coverage"]["processors"][name]["noisy"] = count
    path.write_text(json.dumps(document))
    parapipe.report(tmp_path / "front", tmp_path / "report.html")
    text = opened(tmp_path / "report.html").text("#sources")
    assert told in text.replace("\u202f", " ")
