// The schedule: a row for each processor, bars for operators, lines for transfers, hatching for idle.

const GANTT = { label: 138, right: 14, top: 50, row: 40, gap: 20, foot: 34 };
const VIEWS = {
  frame: { name: "One frame", note: "One frame on its way through the stages. Hatched: the processor belongs to the stage but waits; of processors that take turns on frames, the others work on other frames. Lines are transfers, from the end of the operator that makes the tensor to its arrival." },
  steady: { name: "Frames in a row", note: "Several frames in the full pipeline, each a period behind the frame before it. Hatched: waiting." },
};
// Of configurations in which processors take turns on several frames.
const TURNS = {
  frame: { name: "One frame", note: "One frame on its way, period by period. Hatched: the processor works on other frames, or waits. Lines are transfers, from the end of the operator that makes the tensor to its arrival." },
  steady: { name: "One period", note: "One period of the full pipeline, which repeats. Operators show the number of their frame; the earlier it entered, the paler they are. Hatched: waiting." },
};
const PALEST = 0.3;

function drawGantt() {
  const shown = shownRows().map(([, row]) => row);
  const views = shown.every(interleaved) ? TURNS : VIEWS;
  put("views", ...Object.entries(views).map(([view, { name }]) =>
    html("button", {
      type: "button", "aria-pressed": String(state.view === view), on: { click: () => change({ view }) },
    }, name),
  ));
  byId("gantt-note").textContent = views[state.view].note + (someMedians() ? " Times are by the stated costs." : "");
  const end = Math.max(...shown.map(spanOf));
  pairOf("gantt", (row, width) => gantt(row, width, end));
}

// Seconds that the chart of a configuration covers.
function spanOf(row) {
  if (state.view === "frame") return row.latency_s;
  return (interleaved(row) ? 1 : depthOf(row, row.stages.length) + 1) * row.period_s;
}

// Whether processors take operators of several frames in turn; times then count from a frame's entry.
const interleaved = (row) => schedules[row.id].interleaved;

// Of an interleaved plan, periods after a frame's entry.
const lagOf = (row, time_s) => Math.floor(time_s / row.period_s + 1e-9);

// Processors that take turns on the frames of a stage, or 1.
const turnsOf = (stage) => (stage.in_turn ? stage.processors.length : 1);

// Periods from a frame's entry to the start of a stage.
const depthOf = (row, stage) => row.stages.slice(0, stage).reduce((sum, each) => sum + turnsOf(each), 0);

// The processor that works on a frame in place of the first of those that take turns with it.
function turnOf(row, index, frame) {
  const stage = row.stages.find((each) => each.in_turn && processorIndex.get(each.processors[0].name) === index);
  return stage ? processorIndex.get(stage.processors[(frame ?? 0) % turnsOf(stage)].name) : index;
}

// Runs of stages: [{ stage, frame, at }], `at` in seconds; `stage` is null for all of them. Steady: the pipeline is full at 0.
function runsOf(row, end) {
  if (interleaved(row)) {
    const before = framesBefore(row);
    const frames = state.view === "frame" ? 1 : before + Math.ceil(end / row.period_s - 1e-9);
    return Array.from({ length: frames }, (_, i) => ({
      stage: null, frame: state.view === "frame" ? null : i, at: (i - before) * row.period_s,
    }));
  }
  if (state.view === "frame") {
    let at = 0;
    return row.stages.map((stage, i) => {
      at += stage.time_s;
      return { stage: i, frame: null, at: at - stage.time_s };
    });
  }
  const count = depthOf(row, row.stages.length);
  return row.stages.flatMap((each, stage) => {
    const before = turnsOf(each) - 1; // frames that other processors began earlier
    return Array.from({ length: count + 1 + before }, (_, i) => (
      { stage, frame: i - before - depthOf(row, stage) + count, at: (i - before) * row.period_s }
    )).filter(({ at }) => at + each.time_s > 0);
  });
}

// Of an interleaved plan, frames that entered before the chart begins.
function framesBefore(row) {
  return state.view === "frame" ? 0 : Math.ceil(row.latency_s / row.period_s);
}

function gantt(row, width, end) {
  const resources = resourcesOf(row);
  const bottom = GANTT.top + resources.length * (GANTT.row + GANTT.gap) - GANTT.gap;
  const x = linear(0, end, GANTT.label, width - GANTT.right);
  const runs = runsOf(row, end);
  const until = interleaved(row) ? end : Math.min(end, spanOf(row));
  const chart = { row, resources, x, bottom, width, end: until, plan: schedules[row.id] };
  const used = workers(row).map(({ index }) => front.processors[index]);
  const unused = front.processors.filter((each) =>
    each.part_of === null && !used.some(({ name, part_of }) => [name, part_of].includes(each.name)));
  return svg(
    "svg", { width, height: bottom + GANTT.foot + (unused.length ? 20 : 0), role: "img",
      "aria-label": `Schedule of ${called(row)}` },
    timeAxis({ ...chart, end }), rowNames(chart),
    ...(interleaved(row) ? periods(chart) : runs.map((run) => stageFrame(chart, run))),
    ...runs.map((run) => bars(chart, run)), ...runs.map((run) => passages(chart, run)),
    ...(unused.length
      ? [svg("text", { class: "small", x: 0, y: bottom + GANTT.foot + 12 }, `not used: ${unused.map(({ name }) => name).join(", ")}`)]
      : []),
  );
}

// Rows from the top: processors stage by stage, then links that transfers share.
function resourcesOf(row) {
  const used = workers(row).map(({ name, index, stage }) => ({ name, index, stage, worker: true }));
  const links = schedules[row.id].passages.map((passage) => passage[6]).filter((name) => name && !processorIndex.has(name));
  return [...used, ...[...new Set(links)].map((name) => ({ name, index: null, stage: null }))];
}

const rowTop = (i) => GANTT.top + i * (GANTT.row + GANTT.gap);

function timeAxis({ x, bottom, end, width }) {
  const scale = end < 1e-3 ? [1e6, "µs"] : end < 10 ? [1e3, "ms"] : [1, "s"];
  const marked = ticks(0, end * scale[0], width / 110).map((tick) => {
    const at = x(tick / scale[0]);
    return [
      svg("line", { class: "grid", x1: at, x2: at, y1: GANTT.top - 4, y2: bottom + 4 }),
      svg("text", { class: "tick", x: at, y: bottom + 20, "text-anchor": "middle" }, tick ? tick : `0 ${scale[1]}`),
    ];
  });
  return svg("g", {}, ...marked);
}

// What shares of time are shares of: the stage's own time, or the time between frames.
function lengthOf(row, stage) {
  return state.view === "frame" && !interleaved(row) ? everyOf(row.stages[stage]) : row.period_s;
}

function rowNames({ row, resources }) {
  const byName = new Map(workers(row).map((worker) => [worker.name, worker]));
  return svg("g", {}, ...resources.map((each, i) => {
    const worker = byName.get(each.name);
    const more = worker ? `computes ${percent(worker.busy_s / lengthOf(row, worker.stage))}` : "link";
    return svg(
      "g", { transform: `translate(0,${rowTop(i)})` },
      ...(worker ? [svg("rect", { width: 12, height: 12, y: 8, rx: 3, fill: paint(each.index) })] : []),
      svg("text", { class: "row-name", x: 20, y: 18 }, shortened(each.name, 112, 14, 600)),
      svg("text", { class: "row-more", x: 20, y: 34 }, more),
    );
  }));
}

// Of an interleaved plan: processors that wait, and lines where a period begins and a frame enters.
function periods({ row, resources, x, end }) {
  const before = framesBefore(row);
  const idle = resources.flatMap((each, i) => (each.worker
    ? [svg("rect", { x: x(0), y: rowTop(i), width: x(end) - x(0), height: GANTT.row, fill: "url(#idle)" })] : []));
  const bottom = rowTop(resources.length - 1) + GANTT.row;
  const lines = Array.from({ length: Math.ceil(end / row.period_s - 1e-9) }, (_, i) => {
    const at = x(i * row.period_s);
    const wide = Math.min(x(row.period_s) - x(0), x(end) - at) - 8;
    const title = state.view === "frame" ? `period ${i + 1}` : `frame ${i + before + 1} enters`;
    return [
      svg("line", { class: "stage-line", x1: at, x2: at, y1: GANTT.top - 28, y2: bottom }),
      svg("text", { class: "stage-name", x: at + 5, y: GANTT.top - 16 }, shortened(title, wide, 12, 600)),
    ];
  });
  return [...idle, ...lines.flat()];
}

function stageFrame({ row, resources, x, end }, { stage, frame, at }) {
  const takes = row.stages[stage].in_turn ? row.stages[stage].time_s : lengthOf(row, stage);
  const [left, right] = [x(Math.max(0, at)), x(Math.min(at + takes, end))];
  const first = processorIndex.get(row.stages[stage].processors[0].name);
  const own = resources.map((each, i) => [each, i]).filter(([each]) =>
    (row.stages[stage].in_turn ? each.index === turnOf(row, first, frame) : each.stage === stage));
  const top = rowTop(own[0][1]);
  const title = frame === null
    ? `Stage ${stage + 1}, ${joined(inMs(row.stages[stage].time_s))}` : `frame ${frame + 1}`;
  const head = frame === null || (row.stages.length === 1 && !row.stages[0].in_turn) ? GANTT.top - 16 : top - 7;
  return svg(
    "g", {},
    ...own.map(([, i]) =>
      svg("rect", { x: left, y: rowTop(i), width: Math.max(0, right - left), height: GANTT.row, fill: "url(#idle)" }),
    ),
    svg("line", { class: "stage-line", x1: left, x2: left, y1: head - 12, y2: rowTop(own[own.length - 1][1]) + GANTT.row }),
    svg("text", { class: "stage-name", x: left + 5, y: head }, shortened(title, right - left - 8, 12, 600)),
    ...(frame === null ? [subgraphRuler({ row, x }, stage, at)] : []),
  );
}

// Numbers of the subgraphs over the stretch in which each runs.
function subgraphRuler({ row, x }, stage, at) {
  const spans = new Map();
  for (const [operator, of, , start, end] of schedules[row.id].bars) {
    if (of !== stage) continue;
    const { subgraph } = operators[operator];
    const [from, to] = spans.get(subgraph) || [Infinity, 0];
    spans.set(subgraph, [Math.min(from, start), Math.max(to, end)]);
  }
  const elements = [...spans].map(([subgraph, [from, to]]) => {
    const [left, right] = [x(at + from * 1e-6), x(at + to * 1e-6)];
    const name = String(network.subgraphs[subgraph].number);
    return right - left < textWidth(name, 11) + 5 ? null
      : svg("text", { class: "ruler-name", x: (left + right) / 2, y: GANTT.top - 4, "text-anchor": "middle" }, name);
  });
  return svg("g", {}, ...elements.filter(Boolean));
}

function bars({ row, resources, x, plan, end }, { stage, frame, at }) {
  const byFrame = frame !== null && interleaved(row);
  const most = lagOf(row, row.latency_s);
  const place = new Map(resources.map((each, i) => [each.index, i]));
  const elements = plan.bars.filter((bar) => stage === null || bar[1] === stage).map(([operator, , first, start, stop]) => {
    const processor = turnOf(row, first, frame);
    const [left, right] = [x(Math.max(0, at + start * 1e-6)), x(Math.min(end, at + stop * 1e-6))];
    if (right - left <= 0) return null; // what began earlier, or ends later, is cut at the edge
    const y = rowTop(place.get(processor));
    const box = { x: left, y, width: right - left, height: GANTT.row };
    const pale = byFrame ? 1 - (1 - PALEST) * Math.min(1, lagOf(row, start * 1e-6) / Math.max(1, most)) : 1;
    const under = pale < 1 ? svg("rect", { class: "under", ...box }) : null;
    const shape = svg("rect", {
      class: "bar", ...box, fill: paint(processor), "fill-opacity": pale, "data-op": operator,
    });
    operatorTip(shape, operator, () => [
      line("on", front.processors[processor].name),
      ...(frame === null ? [] : [line("frame", frame + 1)]),
      line("from – to", `${microseconds(start)} – ${microseconds(stop)}`),
      line("takes", microseconds(stop - start)),
    ]);
    const text = nameIn(operator, byFrame ? frame : null, right - left - 8);
    const inside = text && svg("text", {
      class: "inside", x: left + 5, y: y + GANTT.row / 2 + 4,
      style: { fill: pale < 0.7 ? "var(--ink)" : `var(--on-p${textureOf(processor)})` },
    }, text);
    return [under, shape, inside].filter(Boolean);
  });
  return svg("g", {}, ...elements.filter(Boolean));
}

// What stands in a bar so wide: its frame, if frames are told apart, and its name; empty if too little of that.
function nameIn(operator, frame, width) {
  const number = frame === null ? "" : String(frame + 1);
  const text = shortened([number, shortName(operator)].filter(Boolean).join(" "), width);
  const least = number.length && number.length + 1;
  if (text.length - least >= 5 && !(text.endsWith("…") && text.length - least < 9)) return text;
  return number && width >= number.length * 6 ? number : "";
}

// The last part of a path-like name says most, unless many operators share it:
// "Mixed_5b/Branch_1/Conv2d_0a_1x1/convolution" → "Conv2d_0a_1x1"
const nameParts = operators.map(({ name }) => name.split("/").filter(Boolean));
const partCounts = new Map();
for (const part of nameParts.flat()) partCounts.set(part, (partCounts.get(part) || 0) + 1);

function shortName(operator) {
  const rare = nameParts[operator].filter((part) => partCounts.get(part) <= Math.max(1, 0.3 * operators.length));
  return rare[rare.length - 1] || operators[operator].name;
}

function passages({ resources, x, plan, row, end }, { stage, frame, at }) {
  const place = new Map(resources.map((each, i) => [each.index ?? each.name, i]));
  const elements = plan.passages.filter((passage) => stage === null || passage[4] === stage).map((passage) => {
    const [tensor, operator, source, target, , within, occupies, start, stop, size, cast] = passage;
    const [from, to] = [turnOf(row, source, frame), turnOf(row, target, frame)];
    const [left, right] = [x(at + start * 1e-6), x(at + stop * 1e-6)];
    if (at + stop * 1e-6 > end * 1.0001 || at + start * 1e-6 < 0) return null;
    const down = place.get(to) > place.get(from);
    const [y1, y2] = [rowTop(place.get(from)) + (down ? GANTT.row : 0), rowTop(place.get(to)) + (down ? 0 : GANTT.row)];
    const path = svg("path", {
      class: within ? "passage" : "passage between", d: `M${left},${y1}C${left},${(y1 + y2) / 2} ${right},${(y1 + y2) / 2} ${right},${y2}`,
      "data-op": operator,
    });
    const dot = svg("circle", { class: "arrival", cx: right, cy: y2, r: within ? 1.8 : 2.6 });
    const group = svg("g", {}, path, dot, ...occupied(occupies, place, left, right));
    const [name] = network.tensors[tensor];
    return tip(group, () => [
      html("div", { class: "title" }, `${front.processors[from].name} → ${front.processors[to].name}`),
      html("div", { class: "dim" }, name),
      ...(frame === null ? [] : [line("frame", frame + 1)]),
      line("size", bytes(size)), line("takes", microseconds(stop - start)),
      ...(cast ? [line("cast", cast)] : []),
      line("keeps busy", occupies ?? "nothing"),
    ], { enter: () => lightUp(operator, true), leave: () => lightUp(operator, false) });
  });
  return svg("g", {}, ...elements.filter(Boolean));
}

// A transfer that keeps a processor or a link busy is a bar of its own.
function occupied(name, place, left, right) {
  if (!name) return [];
  const at = place.get(processorIndex.has(name) ? processorIndex.get(name) : name);
  if (at === undefined) return [];
  return [svg("rect", { class: "transfer", x: left, y: rowTop(at), width: Math.max(0.5, right - left), height: GANTT.row })];
}
