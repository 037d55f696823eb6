// Puts the page together and listens to keys.

const KEYS = [
  [["←", "→"], "less, more latency"], [["↑", "↓"], "more, fewer frames per second"], [["Shift", "click"], "compare"],
  [["b"], "keep as B"], [["x"], "swap"], [["Esc"], "one only"], [["s"], "frames in a row"], [["t"], "dark"],
];

function drawMasthead() {
  put("title", data.title.replace(/^zoo:/, ""), " ", html("span", { class: "on" }, "on"), ` ${front.platform}`);
  const best = (key, way) => way * Math.max(...rows.map((row) => way * valueOf(row, key)));
  const [soonest, most, least] = [best("latency_s", -1), best("throughput_fps", 1), best("energy_j", -1)];
  const bold = (text) => html("b", {}, text);
  put("lede",
    `${plural(rows.length, "way")} to run ${plural(operators.length, "operator")} on ${plural(front.processors.filter((each) => each.part_of === null).length, "processor")}: `,
    "latency from ", bold(seconds(soonest)), ", throughput up to ", bold(`${digits(most)} frames per second`),
    ", energy from ", bold(joules(least)), " per frame. No configuration is best in all three.",
    front.conversion ? ` The model is ${front.conversion}.` : null);
  byId("front-note").textContent =
    "Each mark is a configuration: one way to spread the network over the chip. Filled marks are those that no other beats in latency, throughput and energy together. The line joins those that no other beats in latency and throughput. Click a mark to see its schedule."
    + (rows.some((row) => row.intervals) ? " Of what is selected, bars show nine of ten draws of the costs, and dots some of the draws." : "")
    + (someMedians() ? " “Median of draws” on an axis: the stated costs put some configurations outside of their bars, so all marks stand at the medians of the draws. Marks are filled by the stated costs." : "");
  put("keys", KEYS.map(([keys, means]) => html("span", {}, keys.map((key) => [html("kbd", {}, key), " "]), means)));
  put("footer", `Made by parapipe ${front.parapipe}. The page holds all its data and fetches nothing.`);
}

// The next configuration in the order of a figure.
function step(key, way) {
  const order = [...rows].sort((one, other) => valueOf(one, key) - valueOf(other, key) || (one.id < other.id ? -1 : 1));
  const next = order.findIndex((row) => row.id === state.a) + way;
  if (order[next]) change({ a: order[next].id });
}

const ON_KEY = {
  ArrowRight: () => step("latency_s", 1),
  ArrowLeft: () => step("latency_s", -1),
  ArrowUp: () => step("throughput_fps", 1),
  ArrowDown: () => step("throughput_fps", -1),
  b: () => keepAsSecond(),
  x: swapped,
  Escape: () => change({ b: null }),
  s: () => change({ view: state.view === "frame" ? "steady" : "frame" }),
  t: () => setTheme(!isDark()),
};

// A and B are the same for a moment: the arrows then move A away.
function keepAsSecond() {
  const former = state.a;
  const order = rows.map((row) => row.id);
  const at = order.indexOf(former);
  change({ a: order[at + 1] || order[at - 1] || former, b: former });
}

function onKey(event) {
  const scrolls = ["ArrowUp", "ArrowDown"].includes(event.key) && document.activeElement !== byId("front");
  const elsewhere = event.target.closest("select, input, textarea");
  const handler = ON_KEY[event.key];
  if (!handler || scrolls || elsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  handler();
}

const isDark = () => document.documentElement.dataset.theme === "dark";

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
}

function followTheme() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  wish.addEventListener("change", () => setTheme(wish.matches));
  setTheme(wish.matches);
  byId("theme").addEventListener("click", () => setTheme(!isDark()));
}

const PARTS = [drawNames, drawFront, drawSummary, drawGantt, drawMemory, drawProcessors, drawNetwork, drawSources, drawTable];

followTheme();
document.body.append(textures());
drawMasthead();
drawAgain();
readAddress();
PARTS.forEach(whenChanged);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", readAddress);
let width = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth !== width) listeners.forEach((draw) => draw());
  width = innerWidth;
});
performance.mark("drawn");
