// Utilisation and power of each processor over one period.

function drawProcessors() {
  byId("processors-note").textContent =
    "The period is the time between frames. The bars show in which share of it each processor computes, moves data or waits, and how much power it draws: dynamic power while it computes, static power all the time that it is used.";
  const most = Math.max(...shownRows().flatMap(([, row]) => workers(row).map((each) => powerOf(each, row).all)));
  pairOf("processors", (row) => processorTable(row, most));
}

// Seconds between frames at which energy and power are stated.
const frameOf = (row) => row.arrival_s ?? row.period_s;

function powerOf(worker, row) {
  const dynamic = worker.dynamic_energy_j / frameOf(row);
  return { dynamic, still: worker.static_power_w, all: dynamic + worker.static_power_w };
}

function processorTable(row, most) {
  const head = ["", "Share of the period", "Power"].map((title) => html("div", { class: "cell head" }, title));
  const body = workers(row).flatMap((worker) => [
    whoCell(worker, row), shareCell(worker, row), powerCell(worker, row, most),
  ]);
  const idle = (row.board_energy_j - row.energy_j) / frameOf(row);
  const all = workers(row).reduce((sum, each) => sum + powerOf(each, row).all, 0);
  const total = html(
    "p", { class: "said" }, html("b", {}, watts(all)), " in total, ", html("b", {}, joined(inMj(row.energy_j))),
    ` per frame every ${joined(inMs(frameOf(row)))}${someMedians() ? ", by the stated costs" : ""}; the board at rest draws ${watts(idle)} more.`,
  );
  return html("div", {}, html("div", { class: "work" }, head, body), total);
}

function whoCell(worker, row) {
  const { description, kind } = front.processors[worker.index];
  return html(
    "div", { class: "cell" },
    html("div", { class: "who" }, chip(worker.index), worker.name),
    html("div", { class: "what describes" }, description || kind),
    html("div", { class: "what" }, [atPoint(worker), ...(interleaved(row) ? [] : [`stage ${worker.stage + 1}`])].join(", ")),
  );
}

function part(cls, share, title) {
  return html("i", { class: cls, title, style: { "flex-basis": `${100 * share}%`, "flex-shrink": "0" } });
}

function shareCell(worker, row) {
  const busy = worker.busy_s / row.period_s;
  const moved = worker.transfer_s / row.period_s;
  const idle = Math.max(0, 1 - busy - moved);
  return html(
    "div", { class: "cell" },
    html("div", { class: "meter" },
      part(`fill-${textureOf(worker.index)}`, busy, "computes"), part("moved", moved, "moves data"),
      html("i", { class: "idle", title: "waits" })),
    html("div", { class: "said" }, html("b", {}, percent(busy)), " computes",
      moved > 0 ? [" · ", html("b", {}, percent(moved)), " moves data"] : null, busy + moved > 1.0005 ? " · more than the period: see Sustained" : ` · ${percent(idle)} waits`),
  );
}

function powerCell(worker, row, most) {
  const { dynamic, still, all } = powerOf(worker, row);
  const colour = `fill-${textureOf(worker.index)}`;
  return html(
    "div", { class: "cell" },
    html("div", { class: "meter" },
      part(colour, dynamic / most, "dynamic"), part(`${colour} static`, still / most, "static")),
    html("div", { class: "said" }, html("b", {}, watts(all)), ` · ${watts(dynamic)} dynamic, ${watts(still)} static · `,
      html("b", {}, joined(inMj(all * frameOf(row))))),
  );
}
