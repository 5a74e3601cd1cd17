// Peak against step time: plans from minimum peak to fastest, the chosen one, the baselines, the budget.
const NARROW = 600;
const MARGIN = { l: 56, r: 12, t: 30, b: 46 };

function frontierPoints() {
  const last = report.frontier.length - 1;
  const named = (point, number) => {
    const names = [point.chosen && "chosen", number === 0 && "minimum peak", number === last && "fastest"];
    return names.filter(Boolean).join(", ");
  };
  return last < 0 ? [wholeStep()] : report.frontier.map((point, number) => ({ ...point, name: named(point, number) }));
}

/** A step of several graphs has no frontier; its one point is the sum of the chosen plans. */
function wholeStep() {
  const sum = (key) => report.graphs.reduce((whole, graph) => whole + graph[key], 0);
  const { peak_bytes, step_seconds } = report;
  const rest = { recompute_seconds: sum("recompute_seconds"), saved_bytes: sum("saved_bytes"), method: "one plan for each graph" };
  return { ...rest, peak_bytes, step_seconds, chosen: true, name: "chosen" };
}

/** On a narrow plot a baseline is labelled by a letter, which the table below explains. */
function letter(number) {
  return String.fromCharCode(65 + number);
}

function drawFrontier() {
  const plot = get("frontier");
  const plans = frontierPoints();
  const everything = [...plans, ...report.baselines];
  const [xUnit, oneByte] = unitFor(Math.max(...everything.map((one) => one.peak_bytes)), BYTE_UNITS);
  const [yUnit, oneSecond] = unitFor(Math.max(...everything.map((one) => one.step_seconds)), TIME_UNITS);
  const peaks = everything.map((one) => one.peak_bytes / oneByte);
  const budget = report.budget_bytes / oneByte;
  // A distant budget is left out: the axis would have to include it, and all plans would share a corner.
  const near = budget < 2 * Math.max(...peaks) && budget > 0.5 * Math.min(...peaks);
  const xRange = padded([...peaks, ...(near ? [budget] : [])], 0.08);
  const yRange = padded(everything.map((one) => one.step_seconds / oneSecond), 0.14);
  const point = (one) => [one.peak_bytes / oneByte, one.step_seconds / oneSecond];
  const names = report.baselines.map((one, number) => (plot.clientWidth < NARROW ? letter(number) : one.name));
  const texts = [...plans.map((one) => one.name), ...names];
  const labels = positions(plot, plans, texts, { point, xRange, yRange, budget: near ? budget : null });
  const rest = labels.slice(plans.length);
  const traces = [
    planTrace(plans, point, labels),
    ...report.baselines.map((one, number) => baselineTrace(one, point, names[number], rest[number])),
  ];
  const layout = {
    ...baseLayout(plot),
    xaxis: axis(`peak (${xUnit})`, xRange),
    yaxis: axis(`step time (${yUnit})`, yRange),
    shapes: near ? budgetShapes(budget, xRange) : [],
    annotations: near ? [budgetNote(budget, xRange)] : [],
  };
  get("frontier-lead").textContent = frontierWords(near);
  const best = plans.find((one) => one.chosen);
  plot.setAttribute("aria-label", `${plans.length} plans${best ? `; the chosen one peaks at ${size(best.peak_bytes)}` : ""}`);
  return Plotly.react(plot, traces, layout, plotConfig());
}

function frontierWords(near) {
  const line = report.frontier.length
    ? "Each plan on the line is the fastest found for its peak."
    : "The step consists of several graphs; this is the sum of their plans.";
  return `${line} ${near ? "Plans left of the budget fit." : `The budget of ${size(report.budget_bytes)} is outside this plot.`}`;
}

function padded(numbers, share) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const pad = share * (high - low || high || 1);
  return [Math.max(0, low - pad), high + pad];
}

function positions(plot, plans, texts, { point, xRange, yRange, budget }) {
  const [width, height] = [plot.clientWidth - MARGIN.l - MARGIN.r, plot.clientHeight - MARGIN.t - MARGIN.b];
  const pixelX = (x) => ((x - xRange[0]) / (xRange[1] - xRange[0])) * width;
  const pixel = (one) => {
    const [x, y] = point(one);
    return [pixelX(x), height - ((y - yRange[0]) / (yRange[1] - yRange[0])) * height];
  };
  const taken = along(plans.map(pixel));
  if (budget !== null) taken.push([pixelX(budget) - 2, 0, 4, height], [pixelX(budget) - 110, 0, 110, 20]);
  const points = [...plans, ...report.baselines].map((one, number) => [...pixel(one), texts[number]]);
  return placeLabels(points, taken, width, height);
}

function planTrace(plans, point, labels) {
  const [line, ink] = [variable("--accent"), variable("--ink")];
  return {
    ...{ type: "scatter", mode: "lines+markers+text", x: plans.map((one) => point(one)[0]) },
    y: plans.map((one) => point(one)[1]),
    text: plans.map((one) => spaced(one.name)),
    textposition: labels.slice(0, plans.length),
    textfont: { color: ink },
    line: { color: line, width: 2 },
    marker: {
      color: plans.map((one) => (one.chosen ? variable("--chosen") : line)),
      symbol: plans.map((one) => (one.chosen ? "star" : "circle")),
      size: plans.map((one) => (one.chosen ? 16 : 8)),
      line: { color: variable("--panel"), width: 1 },
    },
    hovertext: plans.map((one) => planWords(one, one.name || "plan", `${size(one.saved_bytes)} saved, by ${one.method}`)),
    hoverinfo: "text",
  };
}

/** With a non-breaking space on both sides, as distance from the marker. */
function spaced(text) {
  return text && `\u00a0${plain(text)}\u00a0`;
}

function baselineTrace(one, point, name, position) {
  const [x, y] = point(one);
  return {
    ...{ type: "scatter", mode: "markers+text", x: [x], y: [y], text: [spaced(name)], textposition: position },
    textfont: { color: variable("--muted") },
    marker: { symbol: "diamond-open", size: 9, color: variable("--muted"), line: { width: 2 } },
    hovertext: [planWords(one, one.name, "")],
    hoverinfo: "text",
  };
}

function planWords(one, name, more) {
  const recompute = `${duration(one.recompute_seconds)} of it recomputation`;
  const lines = [plain(name), `peak ${size(one.peak_bytes)}`, `step ${duration(one.step_seconds)}, ${recompute}`, plain(more)];
  return lines.filter(Boolean).join("<br>");
}

function budgetShapes(budget, xRange) {
  const whole = { yref: "paper", y0: 0, y1: 1 };
  const over = { type: "rect", x0: budget, x1: xRange[1], fillcolor: variable("--over-tint"), line: { width: 0 }, layer: "below" };
  const line = { type: "line", x0: budget, x1: budget, line: { color: variable("--over"), width: 1.5, dash: "dash" } };
  return [{ ...over, ...whole }, { ...line, ...whole }];
}

function budgetNote(budget, xRange) {
  const left = budget > (xRange[0] + xRange[1]) / 2;
  const text = `budget ${size(report.budget_bytes)}`;
  const where = { x: budget, xanchor: left ? "right" : "left", yref: "paper", y: 1, yanchor: "top" };
  return { ...where, text, showarrow: false, font: { color: variable("--over") } };
}
