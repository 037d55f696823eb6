// What is selected, and who wants to know. The address keeps it: report.html#c07,c12

const data = JSON.parse(document.getElementById("data").textContent);
const { absent, figures, front, network, schedules, solver } = data;
const rows = front.configurations;
const rowOf = new Map(rows.map((row) => [row.id, row]));
const processorIndex = new Map(front.processors.map((processor, i) => [processor.name, i]));
const operators = network.operators;

const state = { a: firstShown(), b: null, view: "frame", sort: ["latency_s", 1], evaluated: false };
const listeners = [];

function firstShown() {
  const wanted = ["balanced", "hybrid-T", "hybrid-L"];
  const named = wanted.map((name) => rows.find((row) => row.names.includes(name)));
  return (named.find(Boolean) || rows[0]).id;
}

function whenChanged(listener) {
  listeners.push(listener);
  listener();
}

function change(update) {
  Object.assign(state, update);
  if (state.b === state.a) state.b = null;
  const shown = [state.a, state.b].filter(Boolean);
  try {
    history.replaceState(null, "", `#${shown.join(",")}`);
  } catch {
    // some viewers of attachments allow no address of its own; nothing else depends on it
  }
  listeners.forEach((listener) => listener());
  byId("announce").textContent = shown.map((id) => spoken(rowOf.get(id))).join("; compared with ");
}

function readAddress() {
  const [a, b] = location.hash.slice(1).split(",").map((id) => (rowOf.has(id) ? id : null));
  if (a) change({ a, b: b || null });
}

function spoken(row) {
  const [latency, energy] = [seconds(valueOf(row, "latency_s")), joules(valueOf(row, "energy_j"))];
  return `${called(row)}: ${row.drawing}, ${latency}, ${fps(valueOf(row, "throughput_fps"))}, ${energy} per frame`;
}

// Seconds between the frames of a stage: of processors in turn, each takes every so many.
const everyOf = (stage) => stage.time_s / (stage.in_turn ? stage.processors.length : 1);

// A figure with the interval of its draws, if it has one: { value, stated, low, high, by_median, even }.
const shownFigure = (row, key) => data.shown[row.id]?.[key];

// The figure to show: the stated one, or the median of the draws.
const valueOf = (row, key) => shownFigure(row, key)?.value ?? row[key];

// "~" where the median of the draws is shown.
const medianMark = (row, key) => (shownFigure(row, key)?.by_median ? "~" : "");

// Whether a figure of the configurations is shown as medians of the draws: of all, or of none.
const byMedian = (key) => rows.some((row) => shownFigure(row, key)?.by_median);
const someMedians = () => figures.some(({ drawn, field }) => drawn && byMedian(field));

// Seconds between frames: the reciprocal of the throughput that is shown.
const everyShown = (row) => 1 / valueOf(row, "throughput_fps");

// "hybrid-T" for one with names, else its number
const called = (row) => (row.names.length ? row.names.join(", ") : row.id);

// The rows shown, with the letter of each: [["A", row]] or [["A", row], ["B", row]]
function shownRows() {
  const pairs = [["A", rowOf.get(state.a)]];
  return state.b ? [...pairs, ["B", rowOf.get(state.b)]] : pairs;
}

function badge(letter) {
  return html("span", { class: letter === "B" ? "badge b" : "badge" }, letter);
}

// One panel for each configuration shown, headed if there are two.
function pairOf(id, draw) {
  const shown = shownRows();
  const place = byId(id);
  place.classList.toggle("two", shown.length > 1);
  place.replaceChildren(
    ...shown.map(([letter, row]) => {
      const head = html(
        "div", { class: "whose" }, badge(letter), called(row), html("small", {}, row.drawing),
      );
      return html("div", { class: "panel", "data-shows": row.id }, shown.length > 1 ? head : null);
    }),
  );
  shown.forEach(([, row], i) => place.children[i].append(draw(row, place.children[i].clientWidth)));
}

// The processors of a row, each once, stage by stage, or as in the platform if they take turns: [{ stage, index, name, ...figures }]
function workers(row) {
  const byName = new Map();
  row.stages.forEach((stage, number) => stage.processors.forEach((each) => {
    if (!byName.has(each.name)) byName.set(each.name, { ...each, stage: number, index: processorIndex.get(each.name) });
  }));
  const each = [...byName.values()];
  return row.kind === "interleaved" ? each.sort((one, other) => one.index - other.index) : each;
}

function atPoint(worker) {
  const { frequency_hz: hertz } = worker.operating_point;
  return `${digits(hertz / 1e9, 3)}\u202fGHz`;
}
