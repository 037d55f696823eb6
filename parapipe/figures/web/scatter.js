// The front: latency across, throughput up, energy as colour, kind as shape.

const REACH = 1.12; // configurations this much beyond the front stand at the edge, with their latency
const WIDE = 5; // times the least latency: where configurations lie beyond, its scale is logarithmic
const latencyOf = (row) => valueOf(row, "latency_s");
const throughputOf = (row) => valueOf(row, "throughput_fps");
const energyOf = (row) => valueOf(row, "energy_j");
const energyRange = rangeOf(rows.filter((row) => row.pareto).map(energyOf));
const farthest = REACH * Math.max(...rows.filter((row) => row.pareto).map(latencyOf));

function rangeOf(values) {
  return [Math.min(...values), Math.max(...values)];
}

function energyColour(row) {
  const [low, high] = energyRange;
  return plasma((energyOf(row) - low) / (high - low || 1));
}

function markPath(kind, r) {
  if (kind === "sequential") return `M0,${-r * 1.25}L${r * 1.25},0L0,${r * 1.25}L${-r * 1.25},0Z`;
  if (kind === "pipe-only") return `M0,${-r * 1.25}L${r * 1.15},${r}L${-r * 1.15},${r}Z`;
  if (kind === "para-only") return `M${-r},${-r}H${r}V${r}H${-r}Z`;
  if (kind === "interleaved") return `M0,${r * 1.25}L${r * 1.15},${-r}L${-r * 1.15},${-r}Z`;
  if (kind === "replicated") {
    const t = r / 2.5;
    return `M${-t},${-r}H${t}V${-t}H${r}V${t}H${t}V${r}H${-t}V${t}H${-r}V${-t}H${-t}Z`;
  }
  return `M${r},0A${r},${r} 0 1 1 ${-r},0A${r},${r} 0 1 1 ${r},0Z`;
}

function drawFront() {
  const width = byId("front").clientWidth;
  const height = 540;
  const key = shapeLines(width, 52);
  const edge = { left: 52, right: 96, top: 42, bottom: 50 + 16 * key.length };
  const near = rows.filter((row) => latencyOf(row) <= farthest);
  const [fast, slow] = rangeOf(near.map(latencyOf));
  const [few, many] = rangeOf(near.map(throughputOf));
  const wide = slow > WIDE * fast;
  const [room, margin] = [(slow - fast || fast) * 0.05, (many - few || many) * 0.07];
  const factor = (slow / fast) ** 0.05;
  const across = wide ? [fast / factor, slow * factor] : [fast - room, slow + room];
  const up = [Math.max(0, few - margin), many + margin];
  const plot = {
    near,
    width,
    height,
    edge,
    wide,
    boxes: [],
    lines: [], // [x1, y1, x2, y2], which texts keep clear of
    steps: [], // which they rather do not cross
    x: (wide ? logarithmic : linear)(...across, edge.left, width - edge.right),
    y: linear(...up, height - edge.bottom, edge.top),
    domain: [across, up],
  };
  const picture = svg(
    "svg", { width, height, role: "img", "aria-label": "Latency, throughput and energy" },
    axes(plot), stairs(plot), clouds(plot), doubts(plot), marks(plot), rings(plot), beyond(plot), labels(plot),
    energyScale(plot), shapes(plot, key),
  );
  put("front", picture);
}

function axes({ wide, x, y, domain, width, height, edge }) {
  const scale = domain[0][1] < 1e-3 ? [1e6, "µs"] : [1e3, "ms"];
  const marked = (wide ? ticksByFactor : ticks)(...domain[0].map((at) => at * scale[0]), 8);
  let free = -Infinity; // where the next number may begin
  const across = marked.map((tick) => {
    const at = x(tick / scale[0]);
    const half = textWidth(`${tick}`, 12) / 2;
    const shown = at - half > free;
    if (shown) free = at + half + 6;
    return [
      svg("line", { class: "grid", x1: at, x2: at, y1: edge.top, y2: height - edge.bottom }),
      shown ? svg("text", { class: "tick", x: at, y: height - edge.bottom + 18, "text-anchor": "middle" }, tick) : null,
    ];
  });
  const up = ticks(domain[1][0], domain[1][1], 7).map((tick) => [
    svg("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: y(tick), y2: y(tick) }),
    svg("text", { class: "tick", x: edge.left - 9, y: y(tick) + 4, "text-anchor": "end" }, tick),
  ]);
  const foot = height - edge.bottom + 38;
  const median = (key, before) => (byMedian(key) ? `${before}median of draws` : "");
  const text = `Latency of one frame, ${scale[1]}${median("latency_s", ", ")}`;
  const [less, room] = ["← less is better", width - edge.right - edge.left];
  const both = textWidth(text, 12.5, 600) + textWidth(less, 12) + 12 < room;
  return svg(
    "g", {}, ...across, ...up,
    svg("text", { class: "axis", x: edge.left, y: foot }, text),
    both ? svg("text", { class: "small", x: width - edge.right, y: foot, "text-anchor": "end" }, less) : null,
    svg("text", { class: "axis", x: 4, y: 12 }, "Throughput, frames per second"),
    svg("text", { class: "axis", x: 4, y: 28 }, median("throughput_fps", "")),
  );
}

function stairs({ x, y, edge, steps: lines }) {
  const steps = rows
    .filter((row) => (row.pareto_latency_throughput || someMedians()) && latencyOf(row) <= farthest)
    .sort((one, other) => latencyOf(one) - latencyOf(other) || throughputOf(other) - throughputOf(one));
  const most = (i) => Math.max(0, ...steps.slice(0, i).map(throughputOf));
  const path = steps.filter((row, i) => throughputOf(row) > most(i)).map((row, i) => {
    const [px, py] = [x(latencyOf(row)), y(throughputOf(row))];
    if (i) lines.push([lines.at(-1)[2], lines.at(-1)[3], px, lines.at(-1)[3]]);
    lines.push([px, i ? lines.at(-1)[3] : py, px, py]);
    return i ? `H${px}V${py}` : `M${px},${py}`;
  });
  return svg("path", { class: "stairs", d: path.join("") || `M${edge.left},${edge.top}` });
}

function marks({ near, x, y }) {
  const sorted = [...near].sort((one, other) => one.pareto - other.pareto);
  return svg("g", {}, ...sorted.map((row) => mark(row, x(latencyOf(row)), y(throughputOf(row)))));
}

// Draws of what is selected, as far as they are in the picture.
function clouds({ x, y, width, height, edge }) {
  const dots = shownRows().flatMap(([, row]) => (data.clouds[row.id] || []).map(([latency, period]) => [
    x(latency / 1e6), y(1e6 / period),
  ]));
  const inside = dots.filter(([px, py]) =>
    px > edge.left && px < width - edge.right && py > edge.top && py < height - edge.bottom);
  return svg("g", {}, ...inside.map(([cx, cy]) => svg("circle", { class: "cloud", cx, cy, r: 1.6 })));
}

// 90 % intervals of latency and throughput of what is selected.
function doubts({ near, x, y, width, height, edge, lines }) {
  const across = (value) => Math.min(Math.max(value, edge.left), width - edge.right);
  const up = (value) => Math.min(Math.max(value, edge.top), height - edge.bottom);
  const selected = shownRows().map(([, row]) => row.id);
  const shown = near.filter((row) => row.intervals && selected.includes(row.id));
  return svg("g", {}, ...shown.map((row) => {
    const { latency_s: [fast, slow], period_s: [often, seldom] } = row.intervals;
    const [px, py] = [x(latencyOf(row)), y(throughputOf(row))];
    const bars = [[across(x(fast)), py, across(x(slow)), py], [px, up(y(1 / often)), px, up(y(1 / seldom))]];
    lines.push(...bars);
    const d = bars.map(([x1, y1, x2, y2]) => `M${x1},${y1}L${x2},${y2}`).join("");
    return svg("path", { class: "doubt", d, "data-doubt": row.id });
  }));
}

function mark(row, px, py) {
  const shape = svg("path", {
    class: row.pareto ? "point" : "point off",
    d: markPath(row.kind, row.names.length ? 7 : row.pareto_latency_throughput ? 6.2 : 5),
    transform: `translate(${px},${py})`,
    fill: row.pareto ? energyColour(row) : null,
    "data-id": row.id,
    on: { click: (event) => pick(row.id, event.shiftKey) },
  });
  return tip(shape, () => rowTip(row));
}

function pick(id, asSecond) {
  change(asSecond ? { b: id } : { a: id });
  byId("tooltip").hidden = true;
}

function rowTip(row) {
  return [
    html("div", { class: "title" }, row.names.length ? `${row.id} ${row.names.join(", ")}` : row.id),
    html("div", { class: "dim" }, row.kind),
    ...parts(row).map(({ processors, where, time_s, in_turn, mark: median }) =>
      html(
        "div", { class: "line" },
        html("span", {}, processors.map((each, k) => [in_turn && k ? "/ " : null, chip(processorIndex.get(each.name)), `${each.name} `]),
          html("span", { class: "dim" }, ` ${where}`)),
        html("span", {}, median, joined(inMs(time_s))),
      ),
    ),
    line("latency", withInterval(row, "latency_s", inMs)),
    line("throughput", withInterval(row, "throughput_fps", (value) => [digits(value), "fps"])),
    line("energy per frame", withInterval(row, "energy_j", inMj)),
    ...(row.chances ? [line("not beaten in", `${percent(row.chances.pareto)} of the draws`)] : []),
  ];
}

// A figure with its interval, if it has one: with ± where that says it.
function withInterval(row, key, show) {
  const figure = shownFigure(row, key);
  const text = medianMark(row, key) + joined(show(valueOf(row, key)));
  if (!figure) return text;
  if (figure.even) return `${text} ±${(50 * (figure.high - figure.low) / figure.stated).toFixed(0)}\u202f%`;
  return `${text} (${show(figure.low)[0]}–${show(figure.high)[0]})`;
}

// What is listed of a row: its stages, or that all its processors take turns on several frames.
function parts(row) {
  if (row.kind === "interleaved") {
    const processors = new Map(row.stages.flatMap((stage) => stage.processors.map((each) => [each.name, each])));
    const frames = Math.ceil(row.latency_s / row.period_s - 1e-9);
    const ordered = [...processors.values()].sort((one, other) => processorIndex.get(one.name) - processorIndex.get(other.name));
    return [{ processors: ordered, where: `take turns on ${plural(frames, "frame")}`, time_s: everyShown(row), mark: medianMark(row, "throughput_fps") }];
  }
  return row.stages.map((stage, i) => ({
    processors: stage.processors, time_s: stage.time_s, in_turn: stage.in_turn,
    where: `subgraph${stage.subgraphs.length > 1 ? "s" : ""} ${subgraphRun(row, i)}`,
  }));
}

// "1–5", or "…3–11" where the stage begins inside subgraph 3
function subgraphRun(row, i) {
  const { subgraphs: run } = row.stages[i];
  const [first, last] = [run[0], run[run.length - 1]];
  const before = i && row.stages[i - 1].subgraphs.slice(-1)[0] === first ? "…" : "";
  const after = i + 1 < row.stages.length && row.stages[i + 1].subgraphs[0] === last ? "…" : "";
  return `${before}${first}${first === last ? "" : `–${last}`}${after}`;
}

function beyond({ y, width, edge, domain, height, boxes, lines }) {
  const far = rows.filter((row) => latencyOf(row) > farthest);
  const placed = [];
  return svg(
    "g", {},
    ...far.map((row) => {
      const up = Math.min(y(Math.max(throughputOf(row), domain[1][0])), height - edge.bottom - 8);
      const at = width - edge.right - 6;
      const barred = lines.filter(([left, y1, , y2]) => y1 === y2 && left < at).map(([, y1]) => y1);
      const py = [...placed, ...barred].sort((one, other) => other - one)
        .reduce((spot, other) => (Math.abs(spot - other) < 15 ? other - 15 : spot), up);
      placed.push(py);
      const upright = lines.filter((each) =>
        each[0] === each[2] && each[0] < at - 13 && crosses(each, boxAt(0, py, at)));
      const text = textBeyond(row, at - 13 - Math.max(edge.left, ...upright.map(([left]) => left + 4)));
      const long = textWidth(text, 12);
      boxes.push(boxAt(at - 13 - long, py, long));
      return svg(
        "g", {}, mark(row, at, py),
        svg("text", { class: "label", x: at - 13, y: py + 4, "text-anchor": "end",
          on: { click: () => pick(row.id, false) } }, text),
      );
    }),
  );
}

// Name and latency of what is at the edge, as far as they have room.
function textBeyond(row, room) {
  const time = `${joined(inMs(latencyOf(row)))} →`;
  const name = shortened(called(row), room - textWidth(`, ${time}`, 12), 12);
  if (name) return `${name}, ${time}`;
  return textWidth(time, 12) <= room ? time : "";
}

function rings(plot) {
  return svg(
    "g", {},
    ...shownRows().map(([letter, row]) => {
      const far = latencyOf(row) > farthest;
      const px = far ? plot.width - plot.edge.right - 6 : plot.x(latencyOf(row));
      const py = Math.min(plot.y(Math.max(throughputOf(row), plot.domain[1][0])), plot.height - plot.edge.bottom - (far ? 8 : 0));
      const tried = BESIDE_RING.map(([right, down]) => boxAt(px + right - 8, py + down, 16));
      const box = tried.find((each) => isClear(each, plot)) || tried[0];
      plot.boxes.push(box);
      return svg(
        "g", {},
        svg("circle", { class: `ring ${letter.toLowerCase()}`, cx: px, cy: py, r: 12.5 }),
        svg("text", { class: "slot", x: box.left + 8, y: box.top + 11, "text-anchor": "middle" }, letter),
      );
    }),
  );
}

// Names stand where they cover the fewest points, and no other text or bar; where there is no such
// place, the tooltip alone tells them.
function labels({ near, x, y, width, height, edge, boxes, lines, steps }) {
  const points = near.map((row) => [x(latencyOf(row)), y(throughputOf(row))]);
  const named = near.filter((row) => row.names.length);
  const right = width - edge.right + 12;
  return svg(
    "g", {},
    ...named.map((row) => {
      const text = shortened(row.names.join(", "), right - edge.left, 12);
      const [px, py] = [x(latencyOf(row)), y(throughputOf(row))];
      const long = textWidth(text, 12);
      const tried = OFFSETS.map(([side, down]) => boxAt(side > 0 ? px + 15 : px - 15 - long, py + down, long));
      const cost = (box, i) => i + 4 * points.filter(([cx, cy]) => inside(box, cx, cy)).length
        + 6 * steps.filter((each) => crosses(each, box)).length
        + (isClear(box, { boxes, lines }) ? 0 : Infinity)
        + (box.left < edge.left || box.left + long > right ? Infinity : 0)
        + (box.top < edge.top - 8 || box.top + box.height > height - edge.bottom ? Infinity : 0);
      const costs = tried.map(cost);
      if (!costs.some(Number.isFinite)) return null;
      const best = costs.indexOf(Math.min(...costs));
      const box = tried[best];
      boxes.push(box);
      return label(row, text, box, OFFSETS[best], [px, py]);
    }),
  );
}

const OFFSETS = [0, -15, 15, -30, 30, -45, 45, -60, 60, 80, -80].flatMap((down) => [[1, down], [-1, down]]);
const boxAt = (left, middle, width) => ({ left, top: middle - 7, width, height: 14 });
const inside = (box, px, py) =>
  px > box.left - 8 && px < box.left + box.width + 8 && py > box.top - 6 && py < box.top + box.height + 6;
const BESIDE_RING = [[0, -21], [0, 21], [-18, -14], [18, -14], [-18, 14], [18, 14], [-18, -30], [18, -30], [-18, 30], [18, 30]];
const isClear = (box, { boxes, lines }) =>
  !boxes.some((other) => overlap(box, other)) && !lines.some((each) => crosses(each, box));
const crosses = ([x1, y1, x2, y2], box) =>
  Math.max(x1, x2) > box.left - 3 && Math.min(x1, x2) < box.left + box.width + 3
  && Math.max(y1, y2) > box.top && Math.min(y1, y2) < box.top + box.height;
const overlap = (one, other) =>
  one.left < other.left + other.width && other.left < one.left + one.width
  && one.top < other.top + other.height && other.top < one.top + one.height;

function label(row, text, box, [side, down], [px, py]) {
  const at = side > 0 ? box.left : box.left + box.width;
  const leader = down
    ? [svg("line", { class: "leader", x1: px, y1: py, x2: at - side * 3, y2: py + down })] : [];
  return svg("g", {}, ...leader, svg("text", {
    class: "label", x: at, y: box.top + 11, "text-anchor": side > 0 ? "start" : "end",
    on: { click: (event) => pick(row.id, event.shiftKey) },
  }, text));
}

function energyScale({ width, height, edge }) {
  const [low, high] = energyRange;
  const [top, bottom, left] = [edge.top, height - edge.bottom - 90, width - 54];
  const y = linear(low, high, bottom, top);
  const bands = 44;
  const step = (bottom - top) / bands;
  const colours = Array.from({ length: bands }, (_, i) =>
    svg("rect", {
      x: left, y: bottom - (i + 1) * step, width: 12, height: step + 0.6, fill: plasma((i + 0.5) / bands),
    }),
  );
  const marked = ticks(low * 1e3, high * 1e3, 5).map((tick) =>
    svg("text", { class: "tick", x: left + 18, y: y(tick / 1e3) + 4 }, tick),
  );
  const pointers = shownRows()
    .filter(([, row]) => energyOf(row) >= low && energyOf(row) <= high)
    .map(([letter, row]) => [letter, y(energyOf(row)) + 4]);
  if (pointers.length > 1 && Math.abs(pointers[0][1] - pointers[1][1]) < 11) {
    pointers.splice(0, 2, ["A B", (pointers[0][1] + pointers[1][1]) / 2]);
  }
  const pointed = pointers.map(([letters, at]) =>
    svg("text", { class: "slot", x: left - 5, y: at, "text-anchor": "end" }, `${letters}▸`),
  );
  return svg(
    "g", {}, ...colours, ...(high > low ? marked : []), ...pointed,
    svg("text", { class: "axis", x: left + 42, y: 12, "text-anchor": "end" }, byMedian("energy_j") ? "Median energy," : "Energy,"),
    svg("text", { class: "axis", x: left + 42, y: 28, "text-anchor": "end" }, "mJ per frame"),
  );
}

const MEANING = {
  sequential: "sequential: one processor", "pipe-only": "pipe-only: stages of one",
  "para-only": "para-only: one stage of several", hybrid: "hybrid: both",
  interleaved: "interleaved: frames take turns", replicated: "replicated: processors take turns",
};

// Which shapes stand in which line under the picture, and where: only those that occur.
function shapeLines(width, left) {
  const lines = [[]];
  let at = left;
  for (const kind of Object.keys(MEANING).filter((each) => rows.some((row) => row.kind === each))) {
    const wide = 19 + textWidth(MEANING[kind], 12);
    if (at + wide > width && at > left) {
      lines.push([]);
      at = left;
    }
    lines.at(-1).push([kind, at]);
    at += wide + 16;
  }
  return lines;
}

// What the shapes mean.
function shapes({ height }, lines) {
  const elements = lines.flatMap((line, i) => line.map(([kind, left]) => svg(
    "g", { transform: `translate(${left + 6},${height - 9 - 16 * (lines.length - 1 - i)})` },
    svg("path", { class: "point off", d: markPath(kind, 5) }),
    svg("text", { class: "small", x: 13, y: 4 }, MEANING[kind]),
  )));
  return svg("g", {}, ...elements);
}
