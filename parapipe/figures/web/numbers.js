// Numbers for readers: three digits that count, SI units with a fitting prefix.

function digits(value, least = 3) {
  if (value === 0) return "0";
  const digits = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.min(6, Math.max(0, least - digits)));
}

// [number, unit] of a quantity, as in [273.7, "ms"]
function quantity(value, unit, least = 3) {
  const steps = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const [scale, prefix] = steps.find(([step]) => Math.abs(value) >= step) || (value ? steps[3] : steps[0]);
  return [digits(value / scale, least), prefix + unit];
}

const joined = ([number, unit]) => (unit ? `${number}\u202f${unit}` : number);
const seconds = (value, least) => joined(quantity(value, "s", least));
const joules = (value) => joined(quantity(value, "J"));
const watts = (value) => joined(quantity(value, "W"));
const microseconds = (value, least) => seconds(value * 1e-6, least);
const fps = (value) => `${digits(value)} fps`;

// Milliseconds and millijoules throughout where figures are compared with one another.
const inMs = (value) => [digits(value * 1e3, 4), "ms"];
const inMj = (value) => [digits(value * 1e3, 4), "mJ"];

function percent(share) {
  if (share > 0 && share < 0.005) return "<1\u202f%";
  if (share >= 0.995 && share < 1) return ">99\u202f%";
  return `${(share * 100).toFixed(0)}\u202f%`;
}

function bytes(value) {
  const steps = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [scale, unit] = steps.find(([step]) => value >= step) || [1, "B"];
  return `${digits(value / scale)}\u202f${unit}`;
}

// A figure of the table of figures, from its value in SI: [number, unit].
const SHOWN_IN = {
  ms: inMs, mJ: inMj, "frames/s": (value) => [digits(value, 4), "fps"], "frames/J": (value) => [digits(value), "frames/J"],
  W: (value) => quantity(value, "W"), MB: (value) => bytes(value).split("\u202f"),
};

function shownIn({ unit, scale }, value) {
  return SHOWN_IN[unit] ? SHOWN_IN[unit](value || 0) : [digits(value * scale, 4), unit];
}

// The same in a column whose heading says the unit; sizes have one each, and may be unknown.
function cellOf(figure, value) {
  if (value === null) return "";
  if (figure.unit === "MB") return joined(shownIn(figure, value));
  return figure.unit === "W" ? digits(value) : shownIn(figure, value)[0];
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

// Round steps that cover a range in about `count` ticks.
function ticks(low, high, count) {
  const span = high - low > 1e-9 * Math.abs(high) ? high - low : 0; // else steps would be lost in rounding
  const rough = span / count || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    values.push(Number((i * step).toPrecision(12)));
  }
  return values;
}

function linear(low, high, from, to) {
  const slope = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * slope;
}

function logarithmic(low, high, from, to) {
  const at = linear(Math.log(low), Math.log(high), from, to);
  return (value) => at(Math.log(value));
}

// Powers of ten, twice and five times them.
function ticksByFactor(low, high) {
  const values = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    values.push(...[1, 2, 5].map((factor) => Number((factor * 10 ** power).toPrecision(1))));
  }
  return values.filter((tick) => low <= tick && tick <= high);
}
