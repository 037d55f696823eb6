// The configuration that is selected, or two of them, in figures.

// `stated`: what is shown in its place by medians leaves a figure that is not drawn by the stated costs.
const FIGURES = [
  { name: "Latency", of: (row) => row.latency_s, key: "latency_s", show: inMs, less: true,
    means: "One frame from its entry to its results." },
  { name: "Throughput", of: (row) => row.throughput_fps, key: "throughput_fps", show: (x) => [digits(x, 4), "fps"], less: false,
    means: "Frames per second: the reciprocal of the longest stage, or of the period in which frames take turns." },
  { name: "Energy per frame", of: (row) => row.energy_j, key: "energy_j", show: inMj, less: true,
    means: "Joules of the processors used." },
  { name: "With idle board", stated: ["energy_j"], of: (row) => row.board_energy_j, key: "board_energy_j", show: inMj, less: true,
    means: "The same, plus what the board draws at rest." },
  { name: "Power", stated: ["energy_j", "throughput_fps"], of: (row) => row.energy_j / row.period_s, show: (x) => quantity(x, "W"), less: true,
    means: "Energy per frame over the period." },
  { name: "Efficiency", of: (row) => 1 / valueOf(row, "energy_j"), show: (x) => [digits(x), "frames/J"], less: false,
    means: "Frames per joule of the processors used." },
  { name: "Sustained", stated: ["throughput_fps"], of: (row) => 1 / row.sustained_period_s, show: (x) => [digits(x, 4), "fps"], less: false,
    means: "What a runtime reaches with one thread per processor and bounded queues." },
  { name: "Peak memory", of: (row) => row.peak_memory_bytes || 0, show: (x) => bytes(x).split("\u202f"), less: true,
    means: "The most memory at one moment: weights, tensors and queues of all frames on their way." },
  { name: "Input and output", of: (row) => row.input_s + row.output_s, show: inMs, less: true,
    means: "Loading a frame and reading the result; not part of the figures above." },
];

function drawSummary() {
  const shown = shownRows();
  const two = shown.length > 1;
  put("summary", ...shown.map(([letter, row]) => chosen(letter, row)), figures(shown, two), evaluation(shown), actions(two));
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

function figures(shown, two) {
  const head = two
    ? html("thead", {}, html("tr", {}, html("th"), ...shown.map(([letter]) => html("th", {}, letter)), html("th", {}, "B to A")))
    : null;
  const body = FIGURES.map(({ name, of, key, show, less, means, stated }) => {
    const values = shown.map(([, row]) => (shownFigure(row, key) ? valueOf(row, key) : of(row)));
    return html(
      "tr", { title: means }, html("th", { scope: "row" }, name),
      ...shown.map(([, row], i) => html(
        "td", {}, html("b", {}, medianMark(row, key), show(values[i])[0]), html("span", { class: "unit" }, ` ${show(values[i])[1]}`),
        intervalLine(row, key, show), byStated(row, stated, of(row)),
      )),
      two ? difference(values, less) : null,
    );
  });
  return html("table", { class: two ? "figures two" : "figures" }, head, html("tbody", {}, body));
}

// Where a figure lies in nine of ten draws of the costs, if ± does not say it.
function intervalLine(row, key, show) {
  const drawn = shownFigure(row, key);
  if (!drawn || drawn.even) return null;
  const means = !drawn.by_median ? "Nine of ten draws of the costs." : `Nine of ten draws of the costs, and their median: by the stated costs it is ${joined(show(drawn.stated))}.`;
  return html("div", { class: "evaluated", title: means }, `${show(drawn.low)[0]}–${joined(show(drawn.high))}`);
}

// What is not drawn follows from the stated costs, also where the rest is shown by medians; and why
// what is sustained lies above the interval of the throughput.
function byStated(row, keys, value) {
  const { stated, high } = (keys?.[0] === "throughput_fps" && shownFigure(row, keys[0])) || {};
  const beyond = value > high;
  const said = [
    keys?.some(byMedian) ? "by the stated costs" : null,
    beyond && stated > high ? "most draws are slower" : null,
    beyond && value > stated * 1.0005 ? "frames overlap in it" : null,
  ].filter(Boolean).join("; ");
  return said ? html("div", { class: "evaluated" }, said) : null;
}

// The final evaluation, where the platform has one: on demand, since it is not what a run is compared with.
function evaluation(shown) {
  if (!shown.some(([, row]) => row.evaluated)) return null;
  const lines = FIGURES.filter(({ key }) => key).map(({ name, key, show }) => html(
    "tr", {}, html("th", { scope: "row" }, name),
    ...shown.map(([, row]) => html("td", {}, row.evaluated ? joined(show(row.evaluated[key])) : "–")),
  ));
  return html(
    "details", { open: state.evaluated, on: { toggle: (event) => { state.evaluated = event.target.open; } } },
    html("summary", {}, "Final evaluation"),
    html("p", {}, "Each operator starts as early as possible, and effects that the search leaves out are included.",
      someMedians() ? " Simulate and run compare a plan with the stated figures, not with medians." : " The figures above are those that simulate and run compare a plan with."),
    html("table", { class: "figures evaluated" }, html("tbody", {}, lines)),
  );
}

function difference([a, b], less) {
  const share = a ? b / a - 1 : 0;
  const same = Math.abs(share) < 5e-4;
  const better = share < 0 === less;
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
