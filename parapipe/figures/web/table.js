// All configurations, in any order.

const COLUMNS = [
  { title: "id", key: "id", show: (row) => row.id },
  { title: "stages [subgraphs]", key: "drawing", show: (row) => row.drawing },
  ...figures.filter(({ column, heading }) => column && heading).map((figure) => (
    { title: figure.heading, key: figure.field, show: (row) => figureCell(row, figure), right: true })),
  { title: "gap", key: "gap", show: (row) => (row.proven ? "0" : percent(row.gap)), right: true },
  { title: "front", key: "front", show: onFront },
  { title: "named", key: "names", show: (row) => row.names.join(", ") },
];

function figureCell(row, figure) {
  const text = `${medianMark(row, figure.field)}${cellOf(figure, valueOf(row, figure.field))}`;
  return figure.field === "energy_j"
    ? [html("span", { class: "dot", style: row.pareto ? { background: energyColour(row) } : {} }), text] : text;
}

const initial = (objective) => objective[0].toUpperCase();

function onFront(row) {
  const stated = row.pareto_latency_throughput ? "LT" : row.pareto ? front.options.objectives.map(initial).join("") : "";
  return row.robust ? `${stated} R`.trim() : stated;
}

function sortValue(row, key) {
  if (key === "front") return onFront(row) || "~";
  return key === "names" ? row.names.join(" ") || "~" : valueOf(row, key);
}

function drawTable() {
  const [key, way] = state.sort;
  const sorted = [...rows].sort((one, other) => {
    const [a, b] = [sortValue(one, key), sortValue(other, key)];
    return (a < b ? -1 : a > b ? 1 : 0) * way;
  });
  const head = COLUMNS.map((column) => html(
    "th", { class: column.right ? "right" : null, "aria-sort": column.key === key ? (way > 0 ? "ascending" : "descending") : null },
    html("button", { type: "button", on: { click: () => change({ sort: [column.key, column.key === key ? -way : 1] }) } },
      column.title, column.key === key ? (way > 0 ? " ↑" : " ↓") : null),
  ));
  const body = sorted.map((row) => html(
    "tr", {
      class: row.id === state.a ? "is-a" : row.id === state.b ? "is-b" : null, "data-id": row.id,
      on: { click: (event) => pick(row.id, event.shiftKey) },
    },
    ...COLUMNS.map(({ show, right }) => html("td", { class: right ? "right" : null }, show(row))),
  ));
  put("table", html("table", { class: "plain" }, html("thead", {}, html("tr", {}, head)), html("tbody", {}, body)),
    html("p", { class: "legend" }, `Front: no other is better in all of ${front.options.objectives.map((each) => `${initial(each)} ${each}`).join(", ")}.`
      + (someMedians() ? " ~: the median of the draws of the costs; what the stated costs give lies outside of nine of ten draws in some row." : "")
      + (front.robust ? ` R: the same for the figures that are kept in ${percent(front.robust.quantile)} of the draws of the costs.` : "")));
}

function drawAgain() {
  const { options } = front;
  const shown = {
    model: front.model, platform: front.platform, mapper: options.mapper, granularity: options.granularity,
    objectives: options.objectives.join(", "), "memory at most": memoryLimit(options), ...segmentLimit(options), "time limit per problem": seconds(options.time_limit_s),
    seed: options.seed, deterministic: options.deterministic ? "yes" : "no",
    "left out if better than another by at most": percent(options.resolution),
    "energy to within": energyWithin(options),
    "proven quantity": options.proves.join(", "), parapipe: front.parapipe,
    "operating points": front.dvfs ? "searched" : "the platform's default ones",
    "SHA-256 of the model": `${front.model_sha256.slice(0, 16)}…`,
  };
  const pre = html("pre", {}, html("code", {}, front.command));
  const copy = html("button", { type: "button", on: { click: () => copied(pre, copy) } }, "Copy");
  put("again", html("div", { class: "command" }, pre, copy),
    html("dl", { class: "options" }, Object.entries(shown).map(([name, value]) =>
      html("div", {}, html("dt", {}, name), html("dd", {}, value)))));
}

function memoryLimit({ max_memory_bytes: limit }) {
  if (!limit) return "no limit";
  if (typeof limit === "number") return bytes(limit);
  return Object.entries(limit).map(([name, size]) => `${bytes(size)} in ${name}`).join(", ");
}

function segmentLimit({ max_segments: limit }) {
  if (!limit) return {};
  const named = typeof limit === "number" ? { "each processor": limit } : limit;
  return { "segments at most": Object.entries(named).map(([name, most]) => `${most} on ${name}`).join(", ") };
}

function energyWithin({ energy_resolution: reached, energy_resolution_asked: limit }) {
  if (limit === null) return "not asked";
  const got = reached === null ? "not known" : percent(reached);
  return `${got}, ${percent(limit)} asked`;
}

async function copied(element, button) {
  getSelection().selectAllChildren(element);
  try {
    await navigator.clipboard.writeText(element.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected"; // a viewer without a clipboard: the reader copies it by hand
  }
}
