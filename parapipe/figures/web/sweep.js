// The page of a sweep: demands, a matrix of models and platforms, and a table of all results.

const sweep = JSON.parse(byId("data").textContent);

const configurations = Object.fromEntries(Object.entries(sweep.configurations).map(([name, rows]) =>
  [name, rows.map((row) => Object.fromEntries(sweep.columns.map((column, i) => [column, row[i]])))]));

const OBJECTIVES = Object.fromEntries(sweep.figures.map((figure) => [figure.name, figure]));

// What is to be least of a figure.
const costOf = ({ field, direction }, row) => (direction === "greatest" ? -row[field] : row[field]);

// What may be asked: a number in the unit of its label, and whether a configuration keeps it.
const DEMANDS = sweep.figures.filter(({ demand }) => demand).map(({ demand, direction, field, name, scale, unit }) => {
  const great = direction === "greatest";
  return {
    id: demand.replace(/_([sjw]|bytes)$/, "").replaceAll("_", "-"),
    title: great ? `at least, ${unit}` : `${name} at most${unit && `, ${unit}`}`,
    keeps: (row, most) => row[field] !== null && (great ? row[field] * scale >= most : row[field] * scale <= most),
  };
});

function picked(result) {
  const figure = OBJECTIVES[byId("minimise").value];
  const demanded = DEMANDS.map((demand) => [demand, parseFloat(byId(demand.id).value)]).filter(([, most]) => most > 0);
  const meeting = (configurations[result.name] || []).filter((row) => demanded.every(([demand, most]) => demand.keeps(row, most)));
  return meeting.reduce((best, row) => (best === null || costOf(figure, row) < costOf(figure, best) ? row : best), null);
}

function drawDemands() {
  const fields = DEMANDS.map(({ id, title }) => html("label", {}, title,
    html("input", { id, type: "number", min: "0", step: "any", on: { input: drawAll } })));
  const options = sweep.figures.map(({ name, words }) => html("option", { value: name }, words));
  put("demands", fields, html("label", {}, "the best in", html("select", { id: "minimise", on: { change: drawAll } }, options)));
}

function drawMatrix() {
  const figure = OBJECTIVES[byId("minimise").value];
  const columns = [...new Set(sweep.results.map((row) => JSON.stringify([row.platform, row.options])))];
  const models = [...new Set(sweep.results.map((row) => row.model))];
  const head = columns.map((column) => {
    const [platform, options] = JSON.parse(column);
    return html("th", { class: "right" }, options === "default" ? platform : `${platform}, ${options}`);
  });
  const body = models.map((model) => {
    const chosen = columns.map((column) => {
      const result = sweep.results.find((row) => row.model === model && JSON.stringify([row.platform, row.options]) === column);
      return result ? picked(result) : null;
    });
    const least = Math.min(...chosen.filter((row) => row).map((row) => costOf(figure, row)));
    return html("tr", {}, html("th", { scope: "row" }, model), chosen.map((row) =>
      html("td", { class: "right" }, row ? html(costOf(figure, row) === least ? "b" : "span", { title: row.drawing }, joined(shownIn(figure, row[figure.field]))) : "–")));
  });
  byId("matrix-note").textContent = `${figure.words[0].toUpperCase()}${figure.words.slice(1)}; bold is the best platform for a model, – meets no demand or has no front.`;
  put("matrix", html("table", { class: "plain" }, html("thead", {}, html("tr", {}, html("th", {}, "model"), head)), html("tbody", {}, body)));
}

function drawResults() {
  const head = ["model", "platform", "options", "configuration", "stages", ...sweep.figures.map(({ heading, words }) => heading || words)];
  const body = sweep.results.map((result) => {
    const row = picked(result);
    const first = [result.model, result.platform, result.options];
    const rest = result.error ? [result.error] : row ? [
      html("a", { href: `results/${encodeURIComponent(result.name)}/plans/${row.id}.json` }, row.id), row.drawing,
      ...sweep.figures.map((figure) => cellOf(figure, row[figure.field])),
    ] : ["no configuration meets all demands"];
    return html("tr", {}, first.map((text) => html("td", {}, text)), rest.map((text, i) =>
      html("td", { class: i > 1 ? "right" : null, colspan: rest.length === 1 ? head.length - 3 : null }, text)));
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
