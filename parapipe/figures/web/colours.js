// Colours: energy on the plasma scale, dark for little, processors by their place in the platform.

const PLASMA = [
  "#0d0887", "#3f049c", "#6600a7", "#8a09a5", "#aa2395", "#c43e7f",
  "#da5a6a", "#eb7655", "#f89540", "#feb82c", "#f8df25",
];
const TEXTURES = 8;

function plasma(share) {
  const at = Math.min(1, Math.max(0, share)) * (PLASMA.length - 1);
  const [low, high] = [PLASMA[Math.floor(at)], PLASMA[Math.ceil(at)]];
  const mixed = [1, 3, 5].map((i) => {
    const [a, b] = [low, high].map((colour) => parseInt(colour.slice(i, i + 2), 16));
    return Math.round(a + (b - a) * (at % 1));
  });
  return `rgb(${mixed.join(" ")})`;
}

const textureOf = (processor) => processor % TEXTURES;
const paint = (processor) => `url(#texture-${textureOf(processor)})`;

function chip(processor) {
  return html("span", { class: `chip fill-${textureOf(processor)}` });
}

function pattern(id, width, height, angle, ...marks) {
  return svg(
    "pattern",
    { id, width, height, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` },
    ...marks,
  );
}

// The textures of `.fill-0` to `.fill-7` in the style sheet, for SVG.
function textures() {
  const mark = "var(--texture)";
  const back = (i, width, height) => svg("rect", { width, height, style: { fill: `var(--p${i})` } });
  const line = (height) => svg("rect", { width: 8, height, style: { fill: mark } });
  const dot = (r, colour) => svg("circle", { cx: 2.5, cy: 2.5, r, style: { fill: colour } });
  const made = [
    pattern("texture-0", 8, 8, 0, back(0, 8, 8)),
    pattern("texture-1", 8, 5.5, 135, back(1, 8, 5.5), line(1.5)),
    pattern("texture-2", 5, 5, 0, back(2, 5, 5), dot(1, mark)),
    pattern("texture-3", 8, 4.2, 0, back(3, 8, 4.2), line(1.2)),
    pattern("texture-4", 8, 5.5, 45, back(4, 8, 5.5), line(1.5)),
    pattern("texture-5", 8, 4.2, 90, back(5, 8, 4.2), line(1.2)),
    pattern("texture-6", 6, 6, 0, back(6, 6, 6), dot(1.2, "rgb(0 0 0 / 30%)")),
    pattern("texture-7", 8, 8, 0, back(7, 8, 8)),
    pattern(
      "idle", 8, 8, 135, svg("rect", { class: "idle-back", width: 8, height: 8 }),
      svg("line", { class: "idle-line", x1: 0, x2: 8, y1: 0, y2: 0 }),
    ),
  ];
  return svg("svg", { class: "unseen", "aria-hidden": true }, svg("defs", {}, ...made));
}
