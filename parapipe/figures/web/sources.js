// Where the numbers come from, and what is proven about them.

const ORIGINS = [
  ["measured", "measured on the chip, for the same operator"],
  ["stated", "stated by the chip's maker, for the same operator"],
  ["compiled", "by the cycles that the processor's compiler tells"],
  ["fitted", "fitted to such measurements"],
  ["nominal", "from data sheets"],
];

// Only what a front has: most have nothing that was stated or compiled.
const origins = () => ORIGINS.filter(([origin]) => front.coverage[origin]);

function drawSources() {
  put("sources", html("div", {}, coverage()), html("div", {}, proofs()));
}

function coverage() {
  const { coverage } = front;
  const times = Object.fromEntries(origins().map(([origin]) => [origin, coverage[origin].time]));
  const chosenOnes = shownRows()
    .map(([letter, row]) => [letter, schedules[row.id].coverage])
    .filter(([, shares]) => shares)
    .map(([letter, shares]) => sourceLine([badge(letter), " as it runs"], shares));
  const { noisy } = coverage;
  const remarks = [
    noisy?.count ? `measured, noisy: ${noisy.count} (${Object.entries(coverage.processors)
      .filter(([, shares]) => shares.noisy).map(([name, shares]) => `${name} ${shares.noisy}`).join(", ")}), `
      + `${percent(noisy.time)} of the time; rounds spread by `
      + `${percent(noisy.least_spread)} to ${percent(noisy.most_spread)}.` : null,
    coverage.extrapolated.operators > 0
      ? `${percent(coverage.extrapolated.operators)} of operators are larger or smaller than anything measured.` : null,
    coverage.unmodelled.length ? `Priced by their bytes alone: ${coverage.unmodelled.join(", ")}.` : null,
    coverage.ruled.length ? `Priced by rules: ${coverage.ruled.join(", ")}.` : null,
  ].filter(Boolean);
  return [
    html("h3", {}, "Where the times come from"),
    ...chosenOnes,
    sourceLine("all processors, by time", times),
    ...Object.entries(coverage.processors).map(([name, shares]) =>
      sourceLine([chip(processorIndex.get(name)), `${name}, by number`], shares)),
    html("p", { class: "legend" }, origins().map(([origin, means]) =>
      html("span", {}, html("span", { class: `chip ${origin}` }), `${origin}: ${means}`))),
    ...remarks.map((text) => html("p", { class: "said" }, text)),
  ];
}

function sourceLine(name, shares) {
  const [most] = origins().reduce((one, other) => ((shares[other[0]] ?? 0) > (shares[one[0]] ?? 0) ? other : one));
  return html(
    "div", { class: "source" }, html("span", {}, name),
    html("div", { class: "meter" }, origins().map(([origin]) =>
      part(origin, shares[origin] ?? 0, `${origin} ${percent(shares[origin] ?? 0)}`))),
    html("span", { class: "value" }, `${percent(shares[most])} ${most}`),
  );
}

function proofs() {
  const { problems, proven, largest_gap: gap } = solver;
  const all = problems === proven;
  const words = [
    `${plural(problems, "mapping problem")} solved, `,
    html("b", {}, all ? "all proven optimal" : `${proven.toLocaleString("en")} proven optimal`),
    all ? "." : `; the largest gap is ${percent(gap)}.`,
    ` ${solver.cached ? `${solver.cached.toLocaleString("en")} were solved by an earlier run. ` : " "}`,
    `Solvers took ${seconds(solver.wall_s)} in total.`,
  ];
  const resolution = front.options.energy_resolution;
  const where = [
    front.dvfs && " at the default points", front.processors.some((each) => each.part_of) && " on undivided processors",
  ].filter(Boolean).join("");
  const near = resolution === null || !front.options.objectives.includes("energy") ? null
    : html("p", { class: "said" }, `Every possible schedule${where} is matched by one of the front`, resolution === 0 ? "."
      : ` to within ${percent(resolution)} in latency, period and energy each.`);
  return [
    html("h3", {}, "What is proven"), html("p", {}, words), near, gapsOf(),
    html("div", { class: "scroll" }, html(
      "table", { class: "plain" },
      html("thead", {}, html("tr", {}, ["Solver", "minimises", "problems", "proven", "time"].map((title, i) =>
        html("th", { class: i > 1 ? "right" : null }, title)))),
      html("tbody", {}, solver.solvers.map((each) => html(
        "tr", {}, html("td", {}, each.solver), html("td", {}, each.proves),
        html("td", { class: "right" }, each.problems), html("td", { class: "right" }, each.proven),
        html("td", { class: "right" }, seconds(each.wall_s)),
      ))),
    )),
    ...absent.map((text) => html("p", { class: "said" }, `N${text.slice(1)}.`)),
  ];
}

function gapsOf() {
  const said = shownRows().map(([letter, row]) => [
    badge(letter), row.proven ? " every schedule proven " : ` a schedule with a gap of ${percent(row.gap)} `,
  ]);
  return html("p", { class: "said" }, said);
}
