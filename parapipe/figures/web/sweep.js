// The page of a sweep: demands, a matrix of models and platforms, and a table of all results.

const sweep = JSON.parse(byId("data").textContent);

const configurations = Object.fromEntries(Object.entries(sweep.configurations).map(([name, rows]) =>
  [name, rows.map((row) => Object.fromEntries(sweep.figures.map((figure, i) => [figure, row[i]])))]));

const OBJECTIVES = {
  latency: { title: "latency", value: (row) => row.latency_s, show: (value) => joined(inMs(value)) },
  throughput: { title: "throughput", value: (row) => row.period_s, show: (value) => fps(1 / value) },
  energy: { title: "energy per frame", value: (row) => row.energy_j, show: (value) => joined(inMj(value)) },
  power: { title: "power", value: (row) => row.energy_j / row.period_s, show: watts },
  memory: { title: "peak memory", value: (row) => row.peak_memory_bytes, show: bytes },
};

// What may be asked: a number in the unit of its label, and whether a configuration keeps it.
const DEMANDS = [
  { id: "min-fps", title: "at least, frames/s", keeps: (row, most) => 1 / row.period_s >= most },
  { id: "max-latency", title: "latency at most, ms", keeps: (row, most) => row.latency_s * 1e3 <= most },
  { id: "max-energy", title: "energy at most, mJ", keeps: (row, most) => row.energy_j * 1e3 <= most },
  { id: "max-power", title: "power at most, W", keeps: (row, most) => row.energy_j / row.period_s <= most },
  { id: "max-memory", title: "memory at most, MB", keeps: (row, most) => row.peak_memory_bytes / 1e6 <= most },
];

function picked(result) {
  const { value } = OBJECTIVES[byId("minimise").value];
  const asked = DEMANDS.map((demand) => [demand, parseFloat(byId(demand.id).value)]).filter(([, most]) => most > 0);
  const kept = (configurations[result.name] || []).filter((row) => asked.every(([demand, most]) => demand.keeps(row, most)));
  return kept.reduce((best, row) => (best === null || value(row) < value(best) ? row : best), null);
}

function drawDemands() {
  const fields = DEMANDS.map(({ id, title }) => html("label", {}, title,
    html("input", { id, type: "number", min: "0", step: "any", on: { input: drawAll } })));
  const options = Object.entries(OBJECTIVES).map(([name, { title }]) => html("option", { value: name }, title));
  put("demands", fields, html("label", {}, "the best in", html("select", { id: "minimise", on: { change: drawAll } }, options)));
}

function drawMatrix() {
  const { title, value, show } = OBJECTIVES[byId("minimise").value];
  const columns = [...new Set(sweep.results.map((row) => JSON.stringify([row.platform, row.options])))];
  const models = [...new Set(sweep.results.map((row) => row.model))];
  const head = columns.map((column) => {
    const [platform, options] = JSON.parse(column);
    return html("th", { class: "right" }, options === "default" ? platform : `${platform}, ${options}`);
  });
  const body = models.map((model) => {
    const found = columns.map((column) => {
      const result = sweep.results.find((row) => row.model === model && JSON.stringify([row.platform, row.options]) === column);
      return result ? picked(result) : null;
    });
    const least = Math.min(...found.filter((row) => row).map(value));
    return html("tr", {}, html("th", { scope: "row" }, model), found.map((row) =>
      html("td", { class: "right" }, row ? html(value(row) === least ? "b" : "span", { title: row.drawing }, show(value(row))) : "–")));
  });
  byId("matrix-note").textContent = `${title[0].toUpperCase()}${title.slice(1)}; bold is the best platform for a model, – meets no demand or has no front.`;
  put("matrix", html("table", { class: "plain" }, html("thead", {}, html("tr", {}, html("th", {}, "model"), head)), html("tbody", {}, body)));
}

function drawResults() {
  const head = ["model", "platform", "options", "configuration", "stages", "ms", "frames/s", "mJ", "W", "peak MB"];
  const body = sweep.results.map((result) => {
    const row = picked(result);
    const first = [result.model, result.platform, result.options];
    const rest = result.error ? [result.error] : row ? [
      html("a", { href: `results/${encodeURIComponent(result.name)}/plans/${row.id}.json` }, row.id), row.drawing,
      digits(row.latency_s * 1e3, 4), digits(1 / row.period_s, 4), digits(row.energy_j * 1e3, 4),
      digits(row.energy_j / row.period_s), row.peak_memory_bytes ? digits(row.peak_memory_bytes / 1e6) : "",
    ] : ["no configuration meets all demands"];
    return html("tr", {}, first.map((text) => html("td", {}, text)), rest.map((text, i) =>
      html("td", { class: i > 1 ? "right" : null, colspan: rest.length === 1 ? 7 : null }, text)));
  });
  put("results", html("table", { class: "plain" },
    html("thead", {}, html("tr", {}, head.map((text, i) => html("th", { class: i > 4 ? "right" : null }, text)))), html("tbody", {}, body)));
}

function drawAll() {
  drawMatrix();
  drawResults();
}

byId("title").textContent = `Sweep of ${plural(sweep.results.length, "result")}`;
byId("footer").textContent = `parapipe ${sweep.parapipe}`;
drawDemands();
drawAll();
