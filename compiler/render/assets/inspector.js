// A card in the corner with all facts about the tensor or launch that has the pointer or the focus.
const inspector = get("inspector");

function inspectTensor(tensor) {
  inspect([element("h3", {}, tensor.name), ...tensorFacts(tensor)]);
}

function inspectLaunch(graph, number) {
  const launch = graph.timeline.launches[number];
  const made = graph.tensors.find(({ name }) => name === launch.operation);
  const recomputes = launch.recomputes ? ", recomputation" : "";
  const facts = [
    ["launch", `${number + 1} of ${graph.timeline.launches.length}, ${launch.pass}${recomputes}`],
    ["module", moduleName(launch.module)],
    ["runs", `${duration(launch.seconds)}, from ${duration(launch.start_seconds)}`],
    ["live", size(total(launch))],
  ];
  const held = heldByKind(graph, launch).map(([kind, bytes]) => [chip(kind), size(bytes)]);
  inspect([
    element("h3", {}, launch.operation),
    factList([...facts, ...held]),
    ...(made ? [element("h4", {}, "tensor it computes"), ...tensorFacts(made)] : []),
  ]);
}

/** Largest first, with the optimizer's state, which is live during every launch. */
function heldByKind(graph, launch) {
  const held = graph.timeline.kinds.map((kind, number) => [kind, launch.bytes[number]]);
  held.push([OPTIMIZER, report.memory.optimizer]);
  return held.filter(([, bytes]) => bytes > 0).sort((one, other) => other[1] - one[1]);
}

function total(launch) {
  return launch.bytes.reduce((sum, bytes) => sum + bytes, report.memory.optimizer);
}

function tensorFacts(tensor) {
  const facts = factList([
    ["decision", chip(tensor.decision)],
    ["operator", tensor.operator],
    ["size", `${size(tensor.bytes)} (${tensor.bytes.toLocaleString("en")} bytes)`],
    ["shape", `${shape(tensor)} ${tensor.dtype}`],
    ["to recompute", duration(tensor.seconds)],
    ["in memory", lifetimes(tensor)],
    ["at the peak", tensor.at_peak ? "live" : "not live"],
    ["module", moduleName(tensor.module)],
    ["source", place(tensor)],
  ]);
  const code = tensor.code ? element("pre", {}, tensor.code) : null;
  const reason = tensor.reason ? element("p", { class: "reason" }, tensor.reason) : null;
  return [facts, code, reason].filter((part) => part !== null);
}

/** A recomputed tensor has one block in the forward and one for each recomputation. */
function lifetimes(tensor) {
  const blocks = timeline.graph.blocks.filter(({ name }) => name === tensor.name);
  return blocks.map(({ first_launch: first, last_launch: last }) => `launch ${first + 1} to ${last + 1}`).join(", then ");
}

function shape(tensor) {
  return tensor.shape.length ? tensor.shape.join(" × ") : "scalar";
}

function factList(facts) {
  const rows = facts.filter(([, value]) => value !== "");
  return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function inspect(parts) {
  const close = element("button", { type: "button", class: "close", "aria-label": "Close details" }, "×");
  close.addEventListener("click", forget);
  inspector.replaceChildren(close, ...parts);
  inspector.hidden = false;
}

function forget() {
  inspector.hidden = true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") forget();
});

// The card ignores the pointer and moves to the other side when the pointer enters it.
document.addEventListener("mousemove", ({ clientX, clientY }) => {
  const { left, right, top, bottom } = inspector.getBoundingClientRect();
  if (left < clientX && clientX < right && top < clientY && clientY < bottom) inspector.classList.toggle("left");
});
