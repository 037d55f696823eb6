// The configuration that is selected, or two of them, in figures.

// What is said of a figure, with what it is called.
const SAID = figures.filter(({ means }) => means);
const titleOf = ({ words }) => words[0].toUpperCase() + words.slice(1);

// The figure that is shown: of one that is 1 / a drawn one, that of the one that is shown.
const figureOf = (row, { field, reciprocal }) =>
  (shownFigure(row, field) || !shownFigure(row, reciprocal) ? valueOf(row, field) : 1 / valueOf(row, reciprocal));

function drawSummary() {
  const shown = shownRows();
  const two = shown.length > 1;
  put("summary", ...shown.map(([letter, row]) => chosen(letter, row)), figureTable(shown, two), evaluation(shown), actions(two));
}

function chosen(letter, row) {
  const listed = parts(row);
  const longest = Math.max(...listed.map(everyOf));
  return html(
    "div", { class: "one", "data-chosen": letter },
    html("div", { class: "chosen" }, badge(letter), called(row),
      html("small", {}, row.names.length ? `${row.id} · ${row.kind}` : row.kind)),
    html("div", { class: "stages" }, listed.map((part, i) => partLine(part, listed.length > 1 ? i + 1 : "", longest))),
    byMedian("throughput_fps") && !listed[0].mark ? html("p", { class: "said" }, "Times of stages are by the stated costs.") : null,
  );
}

function partLine(part, number, longest) {
  const { processors, where, time_s, in_turn, mark } = part;
  const share = `${(100 * everyOf(part)) / longest}%`;
  const indices = processors.map((each) => processorIndex.get(each.name));
  const point = (each) => (front.dvfs ? html("span", { class: "unit" }, ` ${atPoint(each)}`) : null);
  return html(
    "div", { class: "stage" },
    html("span", { class: "number" }, number),
    html("span", {},
      processors.map((each, k) => [k ? (in_turn ? " / " : " + ") : null, chip(indices[k]), each.name, point(each)]),
      html("span", { class: "number" }, `  ${where}`)),
    html("span", { class: "time", title: in_turn ? "Of a frame; the processors take turns on frames." : null },
      mark, joined(inMs(time_s)), in_turn ? ` ÷ ${processors.length}` : null),
    html("span", { class: "meter", style: { width: share } },
      indices.map((index) => html("i", { class: `fill-${textureOf(index)}`, style: { flex: "1" } }))),
  );
}

function figureTable(shown, two) {
  const head = two
    ? html("thead", {}, html("tr", {}, html("th"), ...shown.map(([letter]) => html("th", {}, letter)), html("th", {}, "B to A")))
    : null;
  const body = SAID.map((figure) => {
    const { field, direction, means, follows } = figure;
    const values = shown.map(([, row]) => figureOf(row, figure));
    const texts = values.map((value) => (value === null ? ["not stated", ""] : shownIn(figure, value)));
    return html(
      "tr", { title: means }, html("th", { scope: "row" }, titleOf(figure)),
      ...shown.map(([, row], i) => html(
        "td", {}, html("b", {}, medianMark(row, field), texts[i][0]), html("span", { class: "unit" }, ` ${texts[i][1]}`),
        intervalLine(row, figure), byStated(row, follows, row[field]),
      )),
      two ? (values.includes(null) ? html("td") : difference(values, direction)) : null,
    );
  });
  return html("table", { class: two ? "figures two" : "figures" }, head, html("tbody", {}, body));
}

// Where a figure lies in nine of ten draws of the costs, if ± does not say it.
function intervalLine(row, figure) {
  const interval = shownFigure(row, figure.field);
  const show = (value) => shownIn(figure, value);
  if (!interval || interval.even) return null;
  const means = !interval.by_median ? "Nine of ten draws of the costs." : `Nine of ten draws of the costs, and their median: by the stated costs it is ${joined(show(interval.stated))}.`;
  return html("div", { class: "evaluated", title: means }, `${show(interval.low)[0]}–${joined(show(interval.high))}`);
}

// What is not drawn follows from the stated costs, also where the rest is shown by medians; and why
// what is sustained lies above the interval of the throughput.
function byStated(row, keys, value) {
  const { stated, high } = (keys[0] === "throughput_fps" && shownFigure(row, keys[0])) || {};
  const beyond = value > high;
  const said = [
    keys.some(byMedian) ? "by the stated costs" : null,
    beyond && stated > high ? "most draws are slower" : null,
    beyond && value > stated * 1.0005 ? "frames overlap in it" : null,
  ].filter(Boolean).join("; ");
  return said ? html("div", { class: "evaluated" }, said) : null;
}

// The final evaluation, where the platform has one: on demand, since it is not what a run is compared with.
function evaluation(shown) {
  if (!shown.some(([, row]) => row.evaluated)) return null;
  const evaluated = shown.map(([, row]) => row.evaluated).find(Boolean);
  const lines = SAID.filter(({ field }) => field in evaluated).map((figure) => html(
    "tr", {}, html("th", { scope: "row" }, titleOf(figure)),
    ...shown.map(([, row]) => html("td", {}, row.evaluated ? joined(shownIn(figure, row.evaluated[figure.field])) : "–")),
  ));
  return html(
    "details", { open: state.evaluated, on: { toggle: (event) => { state.evaluated = event.target.open; } } },
    html("summary", {}, "Final evaluation"),
    html("p", {}, "Each operator starts as early as possible, and effects that the search leaves out are included.",
      someMedians() ? " Simulate and run compare a plan with the stated figures, not with medians." : " The figures above are those that simulate and run compare a plan with."),
    html("table", { class: "figures evaluated" }, html("tbody", {}, lines)),
  );
}

function difference([a, b], direction) {
  const share = a ? b / a - 1 : 0;
  const same = Math.abs(share) < 5e-4;
  const better = share < 0 === (direction !== "greatest");
  const text = same ? "same" : `${share > 0 ? "+" : "−"}${(Math.abs(share) * 100).toFixed(1)}\u202f%`;
  return html("td", { class: same ? "unit" : better ? "better" : "worse" }, text);
}

function actions(two) {
  const options = rows
    .filter((row) => row.names.length && row.id !== state.a)
    .map((row) => html("option", { value: row.id, selected: row.id === state.b }, `${called(row)} (${row.id})`));
  const unnamed = state.b && !rowOf.get(state.b).names.length
    ? html("option", { value: state.b, selected: true }, state.b) : null;
  const select = html(
    "select", { "aria-label": "Compare with", on: { change: (event) => change({ b: event.target.value || null }) } },
    html("option", { value: "" }, two ? "Compare with none" : "Compare with…"), unnamed, options,
  );
  const swap = html("button", { type: "button", disabled: !two, on: { click: swapped } }, "Swap");
  return html("div", { class: "actions" }, select, swap);
}

function swapped() {
  if (state.b) change({ a: state.b, b: state.a });
}

function drawNames() {
  const named = rows.filter((row) => row.names.length);
  put("names", ...named.map((row) =>
    html("button", {
      type: "button", "aria-pressed": String(row.id === state.a), "data-id": row.id,
      on: { click: (event) => pick(row.id, event.shiftKey) },
    }, called(row)),
  ));
}
