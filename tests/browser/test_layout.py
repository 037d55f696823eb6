"""No two texts of the report overlap or touch, and none is clipped, covered or struck through.

So it is at the widths of phone, tablet, screen. Texts within an area that scrolls, as the table of
all configurations does, are compared with each other only. What CSS shortens with an ellipsis is as
wide as its box. In a drawing, a text ends where the drawing does, stands on no shape but the bar it
names, and no line of an interval crosses it.
"""

from itertools import pairwise

import pytest

import parapipe
from benchmarks.chromium import view
from parapipe.documents.front_folder import FrontFolder
from parapipe.figures.page import page as page_of
from tests.cases.branchy import branchy

WIDTHS = (420, 480, 800, 900, 1280, 1600)
SLACK = 1.5  # pixels
APART = 3  # pixels between texts side by side
WRONG = """
  const [slack, apart] = arguments, wrong = [], texts = [];
  const scrolls = (style) => /auto|scroll/.test(style.overflowX + style.overflowY);
  const outer = (element, test) => {
    for (let each = element; each; each = each.parentElement) {
      if (test(getComputedStyle(each))) return each;
    }
    return null;
  };
  const own = (element) =>
    element.closest("text") || outer(element, ({ display }) => !/inline/.test(display));
  const filled = (shape) => !/^(none|url.*idle.*)$/.test(getComputedStyle(shape).fill);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || /^(script|style|option)$/i.test(parent.tagName)) continue;
    if (parent.closest("[hidden], .unseen, #tooltip")) continue;
    if (parent.closest("details:not([open]) > :not(summary)")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const cropped = outer(parent, (style) => style.textOverflow === "ellipsis");
    const boxes = cropped ? [cropped.getBoundingClientRect()] : [...range.getClientRects()];
    for (const { left, right, top, bottom } of boxes) {
      if (right - left < 1) continue;
      const area = outer(parent, scrolls);
      const text = `${(parent.closest("[id]") || {}).id}: '${node.data.trim().slice(0, 40)}'`;
      if (!area && (left < -0.5 || right > innerWidth + 0.5)) wrong.push(`${text} is clipped`);
      const drawing = parent.closest("svg")?.getBoundingClientRect();
      if (drawing && (left < drawing.left - 0.5 || right > drawing.right + 0.5)) {
        wrong.push(`${text} leaves its drawing`);
      }
      texts.push({ left, right, top, bottom, area, text, node, own: own(parent) });
    }
  }
  texts.sort((one, other) => one.top - other.top);
  texts.forEach((one, i) => {
    for (const other of texts.slice(i + 1)) {
      if (other.top > one.bottom - slack) break;
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      if (across > slack && Math.min(one.bottom, other.bottom) - other.top > 2 * slack
          && one.area === other.area && one.node !== other.node) {
        wrong.push(`${one.text} and ${other.text} overlap`);
      } else if (across > -apart && Math.min(one.bottom, other.bottom) - other.top > 2 * slack
          && one.area === other.area && one.own !== other.own) {
        wrong.push(`${one.text} and ${other.text} touch`);
      }
    }
  });
  for (const svg of document.querySelectorAll("main svg")) {
    const here = texts.filter(({ node }) => svg.contains(node));
    for (const shape of svg.querySelectorAll("rect")) {
      if (!filled(shape)) continue;
      const box = shape.getBoundingClientRect();
      for (const { left, right, top, bottom, text, node } of here) {
        const later = node.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_FOLLOWING;
        if (node.parentElement.matches(".inside") && !later) continue;
        if (Math.min(right, box.right) - Math.max(left, box.left) > slack
            && Math.min(bottom, box.bottom) - Math.max(top, box.top) > 2 * slack) {
          wrong.push(`${text} stands ${later ? "under" : "on"} a bar`);
        }
      }
    }
    for (const line of svg.querySelectorAll(".doubt")) {
      const { x, y } = svg.getBoundingClientRect();
      for (let at = 0; at <= line.getTotalLength(); at += 1) {
        const point = line.getPointAtLength(at);
        const [px, py] = [point.x + x, point.y + y];
        const hit = here.find(({ left, right, top, bottom }) =>
          px > left - slack && px < right + slack && py > top + slack && py < bottom - slack);
        if (!hit) continue;
        wrong.push(`${hit.text} is struck through`);
        break;
      }
    }
  }
  const wide = document.documentElement.scrollWidth > innerWidth;
  return [...(wide ? ["the page is wider than the window"] : []), ...wrong];
"""
ROWS = "return JSON.parse(document.getElementById('data').textContent).front.configurations"
RULER = """
  return [...document.querySelectorAll("#gantt .ruler-name")].map((name) =>
    name.getBoundingClientRect()).map(({ top, left, right }) => [top, left, right]);
"""
SHOWN = "return JSON.parse(document.getElementById('data').textContent).shown"
NAMES = ("a-cluster-of-cores-with-a-long-name-alone", "hybrid-L", "hybrid-T", "balanced")


@pytest.fixture(scope="module")
def reports(tmp_path_factory, six_processors):
    """Write the reports of several fronts; return their files by name."""
    folder = tmp_path_factory.mktemp("layout")
    model = branchy(folder / "a-model-whose-name-is-rather-long.onnx")
    quick = {"cache": False, "jobs": 1, "note": lambda _: None, "draws": 50}
    fronts = {
        "interleaved": parapipe.map(model, "amlogic-a311d", **quick),
        "several": parapipe.map(
            [f"first={model}", f"second={model}"], "amlogic-a311d",
            rates={"first": 5.0, "second": 3.0}, **quick,
        ),
        "six-processors": six_processors,
    }  # fmt: skip
    for name, front in fronts.items():
        front.write_report(folder / f"{name}.html")
    crowded = fronts["interleaved"]
    document = crowded.document
    rows = [row.model_copy(update={"names": NAMES}) for row in document.configurations]
    rows[0] = rows[0].model_copy(update={"latency_s": 9.0, "pareto": False, "intervals": None})
    at = next(i for i, row in enumerate(rows) if i and row.evaluated)
    other = rows[at].evaluated.model_copy(update={"latency_s": 1.234})
    rows[at] = rows[at].model_copy(update={"evaluated": other})
    folder_of_it = FrontFolder(
        document.model_copy(update={"configurations": tuple(rows)}),
        {each.id: each.plan() for each in crowded},
        crowded.solve_log(),
        crowded.drawn,
    )
    (folder / "names.html").write_bytes(page_of(folder_of_it))
    return folder


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("names", ""),
        ("several", ""),
        ("six-processors", "staged"),
        ("interleaved", "two"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                ("interleaved", ""),
                ("names", "two"),
                ("six-processors", ""),
                ("six-processors", "two"),
            )
        ),
    ],
)
def test_no_two_texts_overlap_and_none_is_clipped(opened, reports, name, address) -> None:
    for width in WIDTHS:
        page = opened(reports / f"{name}.html")
        ids = [(row["id"], row["kind"]) for row in page.run(ROWS)]
        turns = next((each for each, kind in ids[::-1] if kind == "interleaved"), ids[-1][0])
        view(page.driver, width=width, height=900, dark=False)
        staged = [each for each, kind in ids if kind not in ("interleaved", "sequential")]
        beside = {"two": ids[0][0], "staged": (staged or [ids[0][0]])[-1]}
        shown = f"#{turns},{beside[address]}" if address else f"#{turns}"
        page.driver.get("about:blank")
        page.driver.get((reports / f"{name}.html").as_uri() + shown)
        assert page.run(WRONG, SLACK, APART) == [], width
        page.key("s")
        assert page.run(WRONG, SLACK, APART) == [], width
        assert page.console() == []


def test_a_card_says_in_one_line_that_processors_take_turns(opened, reports) -> None:
    page = opened(reports / "interleaved.html")
    rows = page.run(ROWS)
    row = next(row for row in rows if row["kind"] == "interleaved")
    page = opened(reports / "interleaved.html", f"#{row['id']}")
    (line,) = page.all("#summary .stage")
    assert "take turns on" in line.text
    assert len(row["stages"]) >= 1


def test_the_final_evaluation_is_shown_on_demand_only(opened, reports) -> None:
    page = opened(reports / "names.html")
    rows = page.run(ROWS)
    row = next(row for row in rows if row["evaluated"] and row["evaluated"]["latency_s"] == 1.234)
    page = opened(reports / "names.html", f"#{row['id']}")
    shown = page.run(SHOWN)[row["id"]]["latency_s"]
    assert f"{shown['value'] * 1e3:.4g}" in page.text("#summary > .figures")
    latency = "1234"
    assert latency not in page.text("#summary > .figures")
    details = page.all("#summary details")[0]
    assert not details.get_attribute("open")
    page.click(page.all("#summary summary")[0])
    assert details.get_attribute("open")
    assert latency in page.text("#summary details")


def test_numbers_of_subgraphs_over_a_schedule_stand_apart(opened, reports) -> None:
    page = opened(reports / "six-processors.html")
    for row in page.run(ROWS):
        page = opened(reports / "six-processors.html", f"#{row['id']}")
        for width in (420, 800, 1280):
            view(page.driver, width=width, height=900, dark=False)
            ends = sorted(tuple(each) for each in page.run(RULER))
            for (top, _, right), (next_top, left, _) in pairwise(ends):
                assert left - right >= APART or next_top != top, (row["id"], width)
