// The network, subgraph by subgraph, like words on lines: operators coloured by processor, subgraphs
// marked with the colours of their stage.

const NET = { column: 21, level: 18, box: [16, 12], pad: 9, between: 16, lines: 24, strip: 4 };

function drawNetwork() {
  const part = shownRows().every(([, row]) => interleaved(row)) ? "period" : "stage";
  byId("network-note").textContent =
    `Every operator, in the order of data flow. The strip above a subgraph shows its ${part}, by the colours of the ${part}'s processors; the colour of an operator is that of the processor that runs it. Dark lines are transfers between processors.`;
  pairOf("network", networkMap);
}

function networkMap(row, width) {
  const most = Math.max(...row.stages.map((stage) => stage.processors.length));
  const blocks = placedBlocks(width, 26 + most * (NET.strip + 1));
  const place = operators.map(({ subgraph, place: [column, level] }) => {
    const block = blocks[subgraph];
    return [block.x + NET.pad + (column + 0.5) * block.column, block.middle + level * NET.level];
  });
  const of = new Map(schedules[row.id].bars.map(([operator, stage, processor]) => [operator, { stage, processor }]));
  const bottom = Math.max(...blocks.map((block) => block.y + block.height));
  const right = Math.max(width, ...blocks.map((block) => block.x + block.width));
  const picture = svg(
    "svg", { width: right, height: bottom + 20, role: "img", "aria-label": `Network as ${called(row)} runs it` },
    ...blocks.map((block, i) => blockBox(block, network.subgraphs[i])),
    ...stageStrips(row, blocks, of, right), ...flowLines(place, blocks, of), ...operatorBoxes(row, place, of, blocks),
  );
  return html("div", { class: "scroll" }, picture);
}

// Boxes of the subgraphs, wrapped into lines of the given width; `head` pixels are left above each.
function placedBlocks(width, head) {
  const lines = [[]];
  let x = 0;
  for (const { columns, levels } of network.subgraphs) {
    const column = Math.max(3, Math.min(NET.column, (width - 2 * NET.pad) / columns));
    const wide = columns * column + 2 * NET.pad;
    if (x && x + wide > width) {
      lines.push([]);
      x = 0;
    }
    lines[lines.length - 1].push({ x, width: wide, column, levels, line: lines.length - 1 });
    x += wide + NET.between;
  }
  let y = 0;
  for (const blocks of lines) {
    const levels = Math.max(...blocks.map((block) => block.levels));
    const height = levels * NET.level + 2 * NET.pad;
    for (const block of blocks) {
      Object.assign(block, { y: y + head, height, middle: y + head + height / 2 });
    }
    justify(blocks, width, blocks === lines[lines.length - 1]);
    y += head + height + NET.lines;
  }
  return lines.flat();
}

// Spread a line over the whole width, as in justified text; the last one stays as it is.
function justify(blocks, width, last) {
  const { x, width: wide } = blocks[blocks.length - 1];
  const spare = last || blocks.length === 1 ? 0 : (width - x - wide) / (blocks.length - 1);
  blocks.forEach((block, i) => {
    block.x += i * Math.min(2 * NET.between, Math.max(0, spare));
  });
}

function blockBox({ x, y, width, height }, { number }) {
  return svg(
    "g", {}, svg("rect", { class: "block", x, y, width, height, rx: 4 }),
    svg("text", { class: "block-name", x: x + width / 2, y: y + height + 14, "text-anchor": "middle" }, number),
  );
}

// A strip above each subgraph for each processor of its stage; a subgraph cut inside has several.
function stageStrips(row, blocks, of, right) {
  const counts = blocks.map(() => new Map());
  operators.forEach(({ subgraph }, operator) => {
    const { stage } = of.get(operator);
    counts[subgraph].set(stage, (counts[subgraph].get(stage) || 0) + 1);
  });
  const most = Math.max(...row.stages.map((stage) => stage.processors.length));
  let last = -1;
  let previous = { line: -1, right: 0 }; // by the names of stages
  return blocks.flatMap((block, i) => {
    const all = [...counts[i].values()].reduce((sum, count) => sum + count, 0);
    let x = block.x;
    return [...counts[i]].sort(([one], [other]) => one - other).flatMap(([stage, count]) => {
      const wide = (block.width * count) / all;
      const { processors } = row.stages[stage];
      const strips = processors.map((each, k) => svg("rect", {
        x, y: block.y - 3 - (processors.length - k) * (NET.strip + 1), width: wide, height: NET.strip,
        fill: paint(processorIndex.get(each.name)),
      }));
      const from = previous.line === block.line ? previous.right : 0;
      const label = stage === last ? null : nameOver(partName(row, stage), x, from, right);
      const name = label ? [svg("text", { class: "stage-name", x: label.left, y: block.y - 9 - most * (NET.strip + 1) }, label.text)] : [];
      if (label) previous = { line: block.line, right: label.right + 8 };
      last = stage;
      x += wide;
      return [...strips, ...name];
    });
  });
}

// Where a name stands over a strip that begins at `x`: whole or its number, between other names and
// the edge of the picture; null if it has no room.
function nameOver(name, x, from, edge) {
  const texts = [name, name.split(" ").pop()];
  const places = texts.map((text) => ({ text, wide: textWidth(text, 12, 600) }))
    .map(({ text, wide }) => ({ text, left: Math.min(x, edge - wide), right: Math.min(x, edge - wide) + wide }));
  return places.find(({ left }) => left >= from) || null;
}

const partName = (row, stage) => `${interleaved(row) ? "Period" : "Stage"} ${stage + 1}`;

function flowLines(place, blocks, of) {
  const half = NET.box[0] / 2;
  const paths = network.flows.map(([from, to]) => {
    const crosses = of.get(from).processor !== of.get(to).processor;
    const [one, other] = [blocks[operators[from].subgraph], blocks[operators[to].subgraph]];
    const [[x1, y1], [x2, y2]] = [place[from], place[to]];
    const lines = one.line === other.line
      ? curve(x1 + Math.min(half, one.column / 3), y1, x2 - Math.min(half, other.column / 3), y2)
      : `${curve(x1 + half, y1, one.x + one.width + 12, y1)}${curve(other.x - 10, y2, x2 - half, y2)}`;
    return [crosses, svg("path", { class: crosses ? "flow crosses" : "flow", d: lines })];
  });
  return paths.sort(([one], [other]) => one - other).map(([, path]) => path);
}

function curve(x1, y1, x2, y2) {
  const bend = Math.max(4, (x2 - x1) / 2);
  return `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

function operatorBoxes(row, place, of, blocks) {
  const bars = new Map(schedules[row.id].bars.map((bar) => [bar[0], bar]));
  return place.map(([x, y], operator) => {
    const { stage, processor } = of.get(operator);
    const [, , , start, stop] = bars.get(operator);
    const wide = Math.min(NET.box[0], blocks[operators[operator].subgraph].column * 0.76);
    const shape = svg("rect", {
      x: x - wide / 2, y: y - NET.box[1] / 2, width: wide, height: NET.box[1], rx: 2.5,
      fill: paint(processor), "data-op": operator,
    });
    return operatorTip(shape, operator, () => [
      line("runs on", `${front.processors[processor].name}, ${partName(row, stage).toLowerCase()}`),
      line("takes", microseconds(stop - start)),
    ]);
  });
}
