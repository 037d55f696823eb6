// Memory over a period: a step curve for each memory, weights below, its peak marked.

const MEMORY = { left: 92, right: 14, top: 26, height: 84, gap: 34, foot: 24 };

function drawMemory() {
  const stated = Boolean(front.memory);
  byId("memory-part").hidden = !stated;
  if (!stated) return;
  const assumed = front.memory.assumed ? " The platform states no memories: one that all processors share is assumed." : "";
  byId("memory-note").textContent =
    `Memory over one period, all frames on their way included: weights (dark), then tensors and queues. The mark is the peak.${assumed}`;
  const most = Math.max(...shownRows().flatMap(([, row]) => schedules[row.id].memory.map((each) => each.peak)));
  pairOf("memory", (row, width) => memoryChart(row, width, most));
}

function memoryChart(row, width, most) {
  const curves = schedules[row.id].memory;
  const x = linear(0, row.period_s, MEMORY.left, width - MEMORY.right);
  const bottom = MEMORY.top + curves.length * (MEMORY.height + MEMORY.gap) - MEMORY.gap;
  const marked = ticks(0, row.period_s * 1e3, width / 110).map((tick) =>
    svg("text", { class: "tick", x: x(tick / 1e3), y: bottom + 18, "text-anchor": "middle" }, tick ? tick : "0 ms"));
  return svg(
    "svg", { width, height: bottom + MEMORY.foot, role: "img", "aria-label": `Memory of ${called(row)}` },
    svg("g", {}, ...marked), ...curves.map((each, i) => memoryCurve(row, each, i, x, most)),
  );
}

function memoryCurve(row, { name, weights, peak, usage }, i, x, most) {
  const top = MEMORY.top + i * (MEMORY.height + MEMORY.gap);
  const floor = top + MEMORY.height;
  const y = linear(0, most, floor, top);
  const [left, right] = [x(0), x(row.period_s)];
  const steps = usage.map(([at, size]) => `H${x(at * 1e-6)}V${y(size)}`).join("");
  const entry = front.memory.memories[i];
  const peakRow = row.memories[i];
  const mark = svg("circle", { class: "memory-peak", cx: x(peakRow.at_s), cy: y(peak), r: 4 });
  tip(mark, () => [
    html("div", { class: "title" }, `${bytes(peak)} in ${name}`),
    line("at", joined(inMs(peakRow.at_s))), line("weights", bytes(weights)),
    ...(entry.usable_bytes ? [line("free for it", bytes(entry.usable_bytes))] : []),
    ...peakRow.alive.slice(0, 12).map((each) =>
      line(each.content === "tensor" ? each.name : `${each.name} (${each.content})`,
        each.frames > 1 ? `${bytes(each.size_bytes)}, ${each.frames} frames` : bytes(each.size_bytes))),
  ]);
  return svg(
    "g", {},
    svg("path", { class: "memory-used", d: `M${left},${floor}V${y(usage[0][1])}${steps}H${right}V${floor}Z` }),
    svg("rect", { class: "memory-weights", x: left, y: y(weights), width: right - left, height: floor - y(weights) }),
    svg("line", { class: "grid", x1: left, x2: right, y1: floor, y2: floor }),
    svg("text", { class: "row-more", x: left, y: top - 8 }, name),
    svg("text", { class: "tick", x: left - 8, y: y(peak) + 4, "text-anchor": "end" }, bytes(peak)),
    mark,
  );
}
