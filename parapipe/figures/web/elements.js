// Elements made from attributes and text. Text is never read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === "style") {
      for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function put(id, ...children) {
  byId(id).replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

// Width of a line of text in pixels, as it is drawn.
const ruler = document.createElement("canvas").getContext("2d");
let family = "";
function textWidth(text, size, weight = 400) {
  family ||= getComputedStyle(document.body).fontFamily;
  ruler.font = `${weight} ${size}px ${family}`;
  return ruler.measureText(text).width;
}

// A text without its middle, no wider than `width` pixels; the whole of it is a tooltip's matter.
function shortened(text, width, size = 11, weight = 400) {
  const full = textWidth(text, size, weight);
  if (full <= width) return text;
  for (let letters = Math.floor((text.length * width) / full); letters >= 3; letters -= 1) {
    const short = `${text.slice(0, Math.ceil(letters / 2))}…${text.slice(text.length - Math.floor(letters / 2))}`;
    if (textWidth(short, size, weight) <= width) return short;
  }
  return "";
}
