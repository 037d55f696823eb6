// One tooltip for the page; what it says is made when it is needed.

function tip(element, content, also = {}) {
  element.addEventListener("pointerenter", (event) => {
    put("tooltip", content());
    byId("tooltip").hidden = false;
    place(event.clientX, event.clientY);
    if (also.enter) also.enter();
  });
  element.addEventListener("pointermove", (event) => place(event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => {
    byId("tooltip").hidden = true;
    if (also.leave) also.leave();
  });
  return element;
}

function place(x, y) {
  const box = byId("tooltip");
  const { width, height } = box.getBoundingClientRect();
  const left = x + 18 + width < innerWidth ? x + 18 : Math.max(8, x - width - 18);
  box.style.left = `${left}px`;
  box.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - height - 8))}px`;
}

function line(name, value) {
  return html("div", { class: "line" }, html("span", { class: "dim" }, name), html("span", {}, value));
}

// Light up an operator wherever it is drawn.
function lightUp(operator, on) {
  for (const each of document.querySelectorAll(`[data-op="${Number(operator)}"]`)) {
    each.classList.toggle("lit", on);
  }
}

function operatorTip(element, operator, more) {
  const { name, type, nodes, shape, subgraph } = operators[operator];
  const content = () => [
    html("div", { class: "title" }, name),
    html("div", { class: "dim" }, nodes > 1 ? `${type}, ${nodes} ONNX nodes as one` : type),
    line("gives", shape.length ? shape.join(" × ") : "a number"),
    line("subgraph", network.subgraphs[subgraph].number),
    ...more(),
  ];
  return tip(element, content, {
    enter: () => lightUp(operator, true),
    leave: () => lightUp(operator, false),
  });
}
