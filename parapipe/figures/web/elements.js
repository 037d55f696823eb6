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

// A text cut to about `width` pixels of the given size; the whole of it is a tooltip's matter.
function shortened(text, width, size = 11) {
  const most = Math.floor(width / (size * 0.56));
  if (text.length <= most) return text;
  return most < 4 ? "" : `${text.slice(0, most - 1)}…`;
}
