// What is live at the peak of one graph: bars by kind and by module, the largest tensors.
function showPeak(graph) {
  const { at_peak: peak } = graph;
  const launch = graph.timeline.launches[graph.timeline.peak];
  get("peak-lead").replaceChildren(`${size(total(launch))} while `, element("code", {}, peak.operation));
  get("peak-lead").append(` runs in the ${peak.pass}.`);
  const kinds = { ...peak.by_kind };
  if (report.memory.optimizer) kinds[OPTIMIZER] = report.memory.optimizer;
  showBars(get("by-kind"), kinds, (kind) => chip(kind), (kind) => `var(${kindVariable(kind)}, var(--kind-other))`);
  showBars(get("by-module"), peak.by_module, (name) => element("span", {}, moduleName(name)), () => "var(--plain)");
  const rows = peak.largest.map((one) => [
    cell(size(one.bytes), "number"),
    element("td", {}, element("code", {}, one.name)),
    element("td", {}, chip(one.kind)),
    cell(one.source, "source"),
  ]);
  fillTable(get("largest"), ["#size", "tensor", "kind", "source"], rows);
}

function showBars(list, bytesOf, label, fill) {
  const entries = Object.entries(bytesOf).sort((one, other) => other[1] - one[1]);
  const most = Math.max(...entries.map(([, bytes]) => bytes), 1);
  const bars = entries.map(([name, bytes]) => {
    const share = `${((100 * bytes) / most).toFixed(2)}%`;
    const bar = element("i", { style: `width: ${share}; background: ${fill(name)}` });
    return element("li", {}, label(name), element("b", {}, size(bytes)), element("div", { class: "bar" }, bar));
  });
  list.replaceChildren(...bars);
}
