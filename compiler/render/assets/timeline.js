// Live bytes over the launches of one graph, stacked by kind; pointer and arrow keys select a launch.
const FONT = "system-ui, sans-serif";
const timeline = { axis: "launch", hidden: new Set(), graph: null, number: 0 };

function plotConfig() {
  const modeBarButtons = [["zoom2d", "pan2d", "resetScale2d", "toImage"]];
  return { displaylogo: false, displayModeBar: innerWidth < NARROW ? false : "hover", modeBarButtons };
}

/** The layout that both plots share, in the colours of the theme. */
function baseLayout(plot) {
  const [ink, panel] = [variable("--ink"), variable("--panel")];
  return {
    font: { family: FONT, size: 12, color: variable("--muted") },
    hoverlabel: { bgcolor: panel, bordercolor: variable("--line"), font: { family: FONT, color: ink, size: 12 }, align: "left" },
    modebar: { bgcolor: "transparent", color: variable("--muted"), activecolor: ink },
    // On a touch screen, dragging scrolls the page.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    ...{ width: plot.clientWidth, height: plot.clientHeight, margin: MARGIN },
    ...{ paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false },
  };
}

function axis(title, range) {
  const grid = { gridcolor: variable("--grid"), zeroline: false, linecolor: variable("--line"), tickcolor: "transparent" };
  return { title: { text: title, standoff: 8 }, range, ...grid, automargin: false, nticks: 8 };
}

function drawTimeline() {
  const { graph } = timeline;
  const { launches, peak } = graph.timeline;
  const [yUnit, one] = unitFor(total(launches[peak]), BYTE_UNITS);
  const x = timeline.axis === "time" ? timeAxis(launches) : launchAxis(launches);
  const top = total(launches[peak]) / one;
  const budget = report.budget_bytes / one;
  const near = budget < 1.6 * top;
  const plot = get("timeline");
  const layout = {
    ...baseLayout(plot),
    hovermode: "x",
    xaxis: { ...axis(x.title, [x.edges[0], x.edges.at(-1)]), showspikes: true, spikethickness: 1, spikecolor: variable("--muted") },
    yaxis: axis(`live (${yUnit})`, [0, 1.1 * Math.max(top, near ? budget : 0)]),
    shapes: [boundary(launches, x), ...copies(graph, x), ...(near ? [budgetLine(budget)] : [])],
    annotations: [peakNote(plot, x, peak, top), ...passNotes(launches, x), ...(near ? [budgetWords(budget)] : [])],
  };
  const traces = [...areas(graph, x, one), hoverLine(launches, x, one)];
  return Plotly.react(plot, traces, layout, plotConfig());
}

function launchAxis(launches) {
  return { title: "kernel launch", edges: [...launches.keys(), launches.length] };
}

function timeAxis(launches) {
  const last = launches.at(-1);
  const end = last.start_seconds + last.seconds;
  const [unit, one] = unitFor(end, TIME_UNITS);
  return { title: `time (${unit})`, edges: [...launches.map((launch) => launch.start_seconds / one), end / one] };
}

/** Kinds with any bytes, from the bottom of the stack; optimizer state comes first. */
function layers(graph) {
  const { kinds, launches } = graph.timeline;
  const held = kinds.map((kind, number) => [kind, launches.map((launch) => launch.bytes[number])]);
  const state = [OPTIMIZER, launches.map(() => report.memory.optimizer)];
  return [state, ...held].filter(([, bytes]) => bytes.some((one) => one > 0));
}

function areas(graph, x, one) {
  const shown = layers(graph).filter(([kind]) => !timeline.hidden.has(kind));
  return shown.map(([kind, bytes]) => ({
    ...{ type: "scatter", mode: "lines", name: kind, x: x.edges, stackgroup: "live", hoverinfo: "skip" },
    y: [...bytes, bytes.at(-1)].map((live) => live / one),
    line: { shape: "hv", width: 0 },
    fillcolor: colour(kind),
  }));
}

/** An invisible line on top for hovering; three points in each launch make the nearest point belong to that launch. */
const WITHIN = [0.02, 0.5, 0.98];

function hoverLine(launches, x, one) {
  const words = (launch) => [plain(launch.operation), plain(moduleName(launch.module)), size(total(launch))].join("<br>");
  const inEach = (make) => launches.flatMap((launch, number) => WITHIN.map((part) => make(launch, number, part)));
  return {
    ...{ type: "scatter", mode: "lines", line: { width: 0 }, name: "launch", hoverinfo: "text" },
    x: inEach((_, number, part) => x.edges[number] + part * (x.edges[number + 1] - x.edges[number])),
    y: inEach((launch) => total(launch) / one),
    hovertext: inEach(words),
  };
}

/** Where the forward ends and the backward starts. */
function boundaryAt(launches, x) {
  const first = launches.findIndex((launch) => launch.pass === "backward");
  return x.edges[first < 0 ? launches.length : first];
}

function boundary(launches, x) {
  const at = boundaryAt(launches, x);
  const line = { color: variable("--ink"), width: 1, dash: "dot" };
  return { type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line };
}

function passNotes(launches, x) {
  const note = { x: boundaryAt(launches, x), yref: "paper", y: 1, yanchor: "bottom", showarrow: false, xshift: 0 };
  return [
    { ...note, text: "← forward ", xanchor: "right" },
    { ...note, text: " backward →", xanchor: "left" },
  ];
}

function peakNote(plot, x, peak, top) {
  const at = (x.edges[peak] + x.edges[peak + 1]) / 2;
  const text = `<b>peak ${size(total(timeline.graph.timeline.launches[peak]))}</b>`;
  const right = (1 - at / x.edges.at(-1)) * (plot.clientWidth - MARGIN.l - MARGIN.r);
  const side = right > 160 ? { ax: 40, xanchor: "left" } : { ax: -40, xanchor: "right" };
  return {
    ...{ x: at, y: top, ay: 8, text, ...side },
    ...{ font: { color: variable("--ink") }, arrowcolor: variable("--ink"), arrowhead: 2, arrowwidth: 1.2 },
    ...{ bgcolor: variable("--panel"), opacity: 0.92, borderpad: 3 },
  };
}

function budgetLine(budget) {
  const line = { color: variable("--over"), width: 1.5, dash: "dash" };
  return { type: "line", xref: "paper", x0: 0, x1: 1, y0: budget, y1: budget, line };
}

function budgetWords(budget) {
  const text = `budget ${size(report.budget_bytes)}`;
  const where = { xref: "paper", x: 0.01, xanchor: "left", y: budget, yanchor: "bottom", showarrow: false };
  return { ...where, text, font: { color: variable("--over") }, bgcolor: variable("--panel"), opacity: 0.92 };
}

/** What the link to the host copies when: a row for each direction, above the memory, out of the device above into it. */
const LINK_ROWS = { out: [0.97, 0.99], in: [0.94, 0.96] };

function copies(graph, x) {
  const place = placeOf(graph.timeline.launches, x);
  return (graph.offload?.copies ?? []).map((copy) => {
    const [y0, y1] = LINK_ROWS[copy.direction];
    const [x0, x1] = [place(copy.start_seconds), place(copy.start_seconds + copy.seconds)];
    const look = { fillcolor: colour("offloaded"), line: { width: 0 } };
    return { type: "rect", name: `copy ${copy.direction}`, yref: "paper", ...{ x0, x1, y0, y1 }, ...look };
  });
}

/** Seconds of the step on the horizontal axis, also where that counts launches. */
function placeOf(launches, x) {
  return (seconds) => {
    const next = launches.findIndex((launch) => launch.start_seconds > seconds);
    const number = next < 0 ? launches.length - 1 : Math.max(next - 1, 0);
    const launch = launches[number];
    const part = launch.seconds ? Math.min((seconds - launch.start_seconds) / launch.seconds, 1) : 0;
    return x.edges[number] + part * (x.edges[number + 1] - x.edges[number]);
  };
}
