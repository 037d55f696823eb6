// The front: latency across, throughput up, energy as colour, kind as shape.

const REACH = 1.12; // configurations this much beyond the front stand at the edge, with their latency
const WIDE = 5; // times the least latency: where configurations lie beyond, its scale is logarithmic
const energyRange = rangeOf(rows.filter((row) => row.pareto).map((row) => row.energy_j));
const farthest = REACH * Math.max(...rows.filter((row) => row.pareto).map((row) => row.latency_s));

function rangeOf(values) {
  return [Math.min(...values), Math.max(...values)];
}

function energyColour(row) {
  const [low, high] = energyRange;
  return plasma((row.energy_j - low) / (high - low || 1));
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
  const near = rows.filter((row) => row.latency_s <= farthest);
  const [fast, slow] = rangeOf(near.map((row) => row.latency_s));
  const [few, many] = rangeOf(near.map((row) => row.throughput_fps));
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
    taken: [],
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
  const said = `Latency of one frame, ${scale[1]}`;
  const [less, room] = ["← less is better", width - edge.right - edge.left];
  const both = textWidth(said, 12.5, 600) + textWidth(less, 12) + 12 < room;
  return svg(
    "g", {}, ...across, ...up,
    svg("text", { class: "axis", x: edge.left, y: foot }, said),
    both ? svg("text", { class: "small", x: width - edge.right, y: foot, "text-anchor": "end" }, less) : null,
    svg("text", { class: "axis", x: 4, y: 12 }, "Throughput, frames per second"),
  );
}

function stairs({ x, y, edge }) {
  const steps = rows
    .filter((row) => row.pareto_latency_throughput && row.latency_s <= farthest)
    .sort((one, other) => one.latency_s - other.latency_s);
  const path = steps.map((row, i) => {
    const [px, py] = [x(row.latency_s), y(row.throughput_fps)];
    return i ? `H${px}V${py}` : `M${px},${py}`;
  });
  return svg("path", { class: "stairs", d: path.join("") || `M${edge.left},${edge.top}` });
}

function marks({ near, x, y }) {
  const drawn = [...near].sort((one, other) => one.pareto - other.pareto);
  return svg("g", {}, ...drawn.map((row) => mark(row, x(row.latency_s), y(row.throughput_fps))));
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

// 90 % intervals of latency and throughput: of what is selected, and of what has a name.
function doubts({ near, x, y, width, height, edge }) {
  const across = (value) => Math.min(Math.max(value, edge.left), width - edge.right);
  const up = (value) => Math.min(Math.max(value, edge.top), height - edge.bottom);
  const selected = shownRows().map(([, row]) => row.id);
  const drawn = near.filter((row) => row.intervals && (row.names.length || selected.includes(row.id)));
  return svg("g", {}, ...drawn.map((row) => {
    const { latency_s: [fast, slow], period_s: [often, seldom] } = row.intervals;
    const [px, py] = [x(row.latency_s), y(row.throughput_fps)];
    const horizontal = `M${across(x(fast))},${py}H${across(x(slow))}`;
    const vertical = `M${px},${up(y(1 / often))}V${up(y(1 / seldom))}`;
    const named = selected.includes(row.id) ? "doubt selected" : "doubt";
    return svg("path", { class: named, d: horizontal + vertical, "data-doubt": row.id });
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
    ...parts(row).map(({ processors, where, time_s, in_turn }) =>
      html(
        "div", { class: "line" },
        html("span", {}, processors.map((each, k) => [in_turn && k ? "/ " : null, chip(processorIndex.get(each.name)), `${each.name} `]),
          html("span", { class: "dim" }, ` ${where}`)),
        html("span", {}, joined(inMs(time_s))),
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
  const drawn = shownFigure(row, key);
  const text = medianMark(row, key) + joined(show(valueOf(row, key)));
  if (!drawn) return text;
  if (drawn.even) return `${text} ±${(50 * (drawn.high - drawn.low) / drawn.stated).toFixed(0)}\u202f%`;
  return `${text} (${show(drawn.low)[0]}–${show(drawn.high)[0]})`;
}

// What is listed of a row: its stages, or that all its processors take turns on several frames.
function parts(row) {
  if (row.kind === "interleaved") {
    const processors = new Map(row.stages.flatMap((stage) => stage.processors.map((each) => [each.name, each])));
    const frames = Math.ceil(row.latency_s / row.period_s - 1e-9);
    return [{ processors: [...processors.values()], where: `take turns on ${plural(frames, "frame")}`, time_s: row.period_s }];
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

function beyond({ y, width, edge, domain, height, taken }) {
  const far = rows.filter((row) => row.latency_s > farthest);
  const placed = [];
  return svg(
    "g", {},
    ...far.map((row) => {
      const up = Math.min(y(Math.max(row.throughput_fps, domain[1][0])), height - edge.bottom - 8);
      const py = placed.reduce((at, other) => (Math.abs(at - other) < 15 ? other - 15 : at), up);
      placed.push(py);
      const at = width - edge.right - 6;
      const time = `, ${joined(inMs(row.latency_s))} →`;
      const name = shortened(called(row), at - 13 - edge.left - textWidth(time, 12), 12);
      const said = `${name}${time}`;
      const long = textWidth(said, 12);
      taken.push(boxAt(at - 13 - long, py, long));
      return svg(
        "g", {}, mark(row, at, py),
        svg("text", { class: "label", x: at - 13, y: py + 4, "text-anchor": "end",
          on: { click: () => pick(row.id, false) } }, said),
      );
    }),
  );
}

function rings(plot) {
  return svg(
    "g", {},
    ...shownRows().map(([letter, row]) => {
      const far = row.latency_s > farthest;
      const px = far ? plot.width - plot.edge.right - 6 : plot.x(row.latency_s);
      const py = Math.min(plot.y(Math.max(row.throughput_fps, plot.domain[1][0])), plot.height - plot.edge.bottom - (far ? 8 : 0));
      const above = boxAt(px - 8, py - 21, 16);
      const clear = !plot.taken.some((other) => overlap(above, other));
      plot.taken.push(clear ? above : boxAt(px - 8, py + 21, 16));
      return svg(
        "g", {},
        svg("circle", { class: `ring ${letter.toLowerCase()}`, cx: px, cy: py, r: 12.5 }),
        svg("text", { class: "slot", x: px, y: clear ? py - 17 : py + 26, "text-anchor": "middle" }, letter),
      );
    }),
  );
}

// Names stand where they cover the fewest points and no other text; where there is no such place,
// the tooltip alone tells them.
function labels({ near, x, y, width, height, edge, taken }) {
  const points = near.map((row) => [x(row.latency_s), y(row.throughput_fps)]);
  const named = near.filter((row) => row.names.length);
  const right = width - edge.right + 12;
  return svg(
    "g", {},
    ...named.map((row) => {
      const text = shortened(row.names.join(", "), right - edge.left, 12);
      const [px, py] = [x(row.latency_s), y(row.throughput_fps)];
      const long = textWidth(text, 12);
      const tried = OFFSETS.map(([side, down]) => boxAt(side > 0 ? px + 15 : px - 15 - long, py + down, long));
      const cost = (box, i) => i + 4 * points.filter(([cx, cy]) => inside(box, cx, cy)).length
        + (taken.some((other) => overlap(box, other)) ? Infinity : 0)
        + (box.left < edge.left || box.left + long > right ? Infinity : 0)
        + (box.top < edge.top - 8 || box.top + box.height > height - edge.bottom ? Infinity : 0);
      const costs = tried.map(cost);
      if (!costs.some(Number.isFinite)) return null;
      const best = costs.indexOf(Math.min(...costs));
      const box = tried[best];
      taken.push(box);
      return label(row, text, box, OFFSETS[best], [px, py]);
    }),
  );
}

const OFFSETS = [0, -15, 15, -30, 30, -45, 45, -60, 60, 80, -80].flatMap((down) => [[1, down], [-1, down]]);
const boxAt = (left, middle, width) => ({ left, top: middle - 7, width, height: 14 });
const inside = (box, px, py) =>
  px > box.left - 8 && px < box.left + box.width + 8 && py > box.top - 6 && py < box.top + box.height + 6;
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
    .filter(([, row]) => row.energy_j >= low && row.energy_j <= high)
    .map(([letter, row]) => [letter, y(row.energy_j) + 4]);
  if (pointers.length > 1 && Math.abs(pointers[0][1] - pointers[1][1]) < 11) {
    pointers.splice(0, 2, ["A B", (pointers[0][1] + pointers[1][1]) / 2]);
  }
  const pointed = pointers.map(([letters, at]) =>
    svg("text", { class: "slot", x: left - 5, y: at, "text-anchor": "end" }, `${letters}▸`),
  );
  return svg(
    "g", {}, ...colours, ...(high > low ? marked : []), ...pointed,
    svg("text", { class: "axis", x: left + 42, y: 12, "text-anchor": "end" }, "Energy,"),
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
  const drawn = lines.flatMap((line, i) => line.map(([kind, left]) => svg(
    "g", { transform: `translate(${left + 6},${height - 9 - 16 * (lines.length - 1 - i)})` },
    svg("path", { class: "point off", d: markPath(kind, 5) }),
    svg("text", { class: "small", x: 13, y: 4 }, MEANING[kind]),
  )));
  return svg("g", {}, ...drawn);
}
