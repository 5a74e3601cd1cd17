// Draws the page once, the parts of one graph when a graph is chosen, and the plots when theme or width change.
const graphs = [report.step, ...report.graphs].filter((graph) => graph?.timeline?.launches.length);

function chooseGraph(number) {
  const graph = graphs[number];
  Object.assign(timeline, { graph, number: graph.timeline.peak });
  const { launches, peak } = graph.timeline;
  get("timeline-lead").textContent = graphWords(graph);
  get("timeline").setAttribute("aria-label", `live bytes over ${launches.length} launches, peak at ${launches[peak].operation}`);
  showKinds(graph);
  showPeak(graph);
  setTensors(graph.tensors);
  drawTimeline();
}

function graphWords(graph) {
  const recompute = graph.recompute_seconds > 0 ? `, ${duration(graph.recompute_seconds)} of it recomputation` : "";
  const gap = graph.gap.every_plan_gap_of_step;
  const bound = Number.isFinite(gap) ? ` Its step is at most ${percent(gap)} above the bound for any plan within the budget.` : "";
  const launches = count(graph.timeline.launches.length, "launch", "launches");
  return `${launches}, ${duration(graph.step_seconds)}${recompute}; ${size(graph.saved_bytes)} saved.${bound}`;
}

function prepareGraphs() {
  const select = get("graph");
  const options = graphs.map((graph, number) =>
    element("option", { value: number }, `${graph.name}: ${graphPeak(graph)}, ${count(graph.tensors.length, "tensor")}`),
  );
  select.append(...options);
  select.addEventListener("input", () => chooseGraph(Number(select.value)));
  const whole = report.step ? "The whole step, or one" : "One";
  get("graph-note").textContent = `${whole} of its ${report.graphs.length} graphs. All parts below show this only.`;
  select.value = graphs.reduce((best, graph, number) => (graph.peak_bytes > graphs[best].peak_bytes ? number : best), 0);
  if (report.step) select.value = 0;
  get("graphs").hidden = graphs.length < 2;
}

function graphPeak({ timeline: { launches, peak } }) {
  return size(total(launches[peak]));
}

function showKinds(graph) {
  const buttons = layers(graph).map(([kind]) => {
    const button = element("button", { type: "button", "aria-pressed": !timeline.hidden.has(kind) }, chip(kind));
    button.addEventListener("click", () => {
      if (!timeline.hidden.delete(kind)) timeline.hidden.add(kind);
      button.setAttribute("aria-pressed", !timeline.hidden.has(kind));
      drawTimeline();
    });
    return button;
  });
  get("kinds").replaceChildren(...buttons);
}

function prepareAxis() {
  const buttons = document.querySelectorAll("[data-axis]");
  for (const button of buttons)
    button.addEventListener("click", () => {
      timeline.axis = button.dataset.axis;
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
      drawTimeline();
    });
}

/** Pointer, focus and arrow keys select a launch, which the inspector shows. */
function prepareTouch() {
  const plot = get("timeline");
  const point = () => {
    const curveNumber = plot.data.length - 1;
    Plotly.Fx.hover(plot, [{ curveNumber, pointNumber: timeline.number * WITHIN.length + 1 }]);
  };
  plot.on("plotly_hover", ({ points }) => {
    timeline.number = Math.floor(points.at(-1).pointNumber / WITHIN.length);
    inspectLaunch(timeline.graph, timeline.number);
  });
  plot.on("plotly_unhover", () => document.activeElement === plot || forget());
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && point());
  plot.addEventListener("blur", forget);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = timeline.graph.timeline.launches.length - 1;
    timeline.number = Math.min(last, Math.max(0, timeline.number + step));
    point();
  });
}

function prepareTheme() {
  const root = document.documentElement;
  const name = () => {
    get("theme").textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    get("theme").setAttribute("aria-label", `Switch to the ${get("theme").textContent.toLowerCase()} theme`);
  };
  const paint = () => {
    name();
    drawPlots();
  };
  get("theme").addEventListener("click", () => {
    root.dataset.chosen = "";
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    paint();
  });
  document.addEventListener("themechange", paint);
  name();
}

function drawPlots() {
  drawFrontier();
  drawTimeline();
}

function prepareWidth() {
  let width = innerWidth;
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (width !== innerWidth) drawPlots();
      width = innerWidth;
    }, 120);
  });
}

showSummary();
showPlans();
drawFrontier();
prepareGraphs();
prepareAxis();
prepareTable();
chooseGraph(Number(get("graph").value));
prepareTouch();
prepareTheme();
prepareWidth();
