// Verdict, figures, accuracy notes, what-if rows and graph breaks.
function showSummary() {
  get("target").textContent = report.target;
  const settings = Object.entries(report.settings).map(([name, value]) => `${name} ${value}`);
  const { name, memory_bytes: memory } = report.device;
  const device = memory ? `${name}, ${size(memory)}` : name;
  get("setting").append(...[...settings, device].map((text) => element("span", { class: "chip" }, text)));
  showVerdict();
  showFigures();
  showNotes();
  showWhatIf();
  showBreaks();
  get("footer").append(`autockpt ${report.autockpt}, torch ${report.torch}, traced as ${report.device.traced_as}. `);
  get("footer").append("Sizes and seconds are forecasts; nothing was run.");
}

function showVerdict() {
  const { fits, peak_bytes: peak, budget_bytes: budget } = report;
  get("verdict").className = fits ? "fits" : "over";
  const time = report.overhead > 0.0005 ? `${slower(report.overhead)} step time` : "at full speed";
  const words = `${size(peak)} of ${size(budget)}, ${time}`;
  get("verdict").append(
    element("p", { class: "headline" }, element("b", {}, fits ? "Fits" : "Does not fit"), element("span", {}, words)),
    element("p", { class: "lead" }, report.verdict),
    meter(peak, budget),
  );
}

/** The peak as a bar; minimum peak, peak of the fastest plan, and budget as ticks. */
function meter(peak, budget) {
  const whole = Math.max(peak, budget, Math.min(report.fastest_bytes, 1.5 * budget)) * 1.02;
  const at = (bytes) => `${Math.min(100, (100 * bytes) / whole).toFixed(2)}%`;
  const tick = (bytes, name) =>
    element("i", { class: `tick ${name}`, "data-name": name === "minimum" ? "min peak" : name, style: `left: ${at(bytes)}`, title: size(bytes) });
  const ticks = [tick(report.min_peak_bytes, "minimum"), tick(report.fastest_bytes, "fastest"), tick(budget, "budget")];
  // A name ends at its tick; that of the fastest plan begins there if it fits, away from the name of the minimum.
  ticks[1].classList.toggle("begins", report.fastest_bytes < 0.75 * whole);
  ticks[0].classList.toggle("unnamed", report.min_peak_bytes < 0.15 * whole);
  const bar = element("div", { class: "meter" }, element("i", { class: "fill", style: `width: ${at(peak)}` }), ...ticks);
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `peak ${size(peak)}, budget ${size(budget)}`);
  return bar;
}

function showFigures() {
  const { optimizer, compiled_bytes: compiled } = report;
  const share = `${percent(report.peak_bytes / report.budget_bytes)} of budget`;
  const figures = [
    ["Peak", size(report.peak_bytes), compiled === null ? share : `${share}; compiled ${size(compiled)}`],
    ["Budget", size(report.budget_bytes), report.device.name],
    ["Minimum peak", size(report.min_peak_bytes), "smallest of all plans found"],
    ["Fastest", size(report.fastest_bytes), `peak of the plan with ${duration(report.fastest_seconds)} a step`],
    ["Step", duration(report.step_seconds), "forward and backward"],
    ["Overhead", slower(report.overhead), "over the fastest step"],
    ["Parameters", many(report.parameters), size(report.memory.parameters)],
    ["Optimizer", optimizer ? size(optimizer.state_bytes) : "none", optimizer ? `${optimizer.name} state` : "not counted"],
  ];
  figures.push(...report.graphs.filter((graph) => graph.offload).map(({ offload }) => offloadFigure(offload)));
  if (report.rank) figures.push(...rankFigures(report.rank));
  const boxes = figures.map(([name, value, note]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, element("b", {}, value), element("small", {}, note))),
  );
  get("figures").append(...boxes);
}

/** Of one rank of a job. */
function rankFigures({ rank, world_size: ranks, parameters, seconds, stages }) {
  const where = stages.length ? `, stage ${stages.join(", ")}` : "";
  const sent = duration(seconds.inside + seconds.outside);
  return [
    ["Rank", `${rank} of ${ranks}`, `${many(parameters)} parameters${where}`],
    ["Communication", sent, `${duration(seconds.exposed)} of the step without computation`],
  ];
}

function showNotes() {
  const estimated = Object.entries(report.estimated);
  const notes = report.device.approximations.map((text) => element("li", {}, text));
  if (estimated.length) notes.push(estimatedNote(estimated));
  if (!notes.length) return;
  get("notes").append(element("ul", {}, ...notes));
  get("notes").hidden = false;
}

function estimatedNote(estimated) {
  const lines = estimated.map(([operator, source]) => element("li", {}, element("code", {}, operator), `: ${source}`));
  const title = `${count(estimated.length, "operator")} whose time is estimated`;
  const open = estimated.length <= 3 ? "" : null;
  return element("li", {}, element("details", { open }, element("summary", {}, title), element("ul", {}, ...lines)));
}

function showWhatIf() {
  const { what_if: rows, max_batch: most } = report;
  get("what-if-card").hidden = !rows.length && !most;
  if (most) {
    const limit = most.next_bytes === null ? most.stopped : `a batch of ${most.batch + 1} needs ${size(most.next_bytes)}`;
    const batch = element("b", {}, String(most.batch));
    get("max-batch").append(most.next_bytes === null ? "A batch that fits is " : "The largest batch that fits is ", batch);
    get("max-batch").append(`, with a peak of ${size(most.peak_bytes)}; ${limit}.`);
    get("max-batch").hidden = false;
  }
  const cells = rows.map((row) => [
    cell(row.change),
    cell(Object.entries(row.settings).map(([name, value]) => `${name} ${value}`).join(", ")),
    element("td", {}, verdictMark(row.fits)),
    ...[row.peak_bytes, row.min_peak_bytes, row.fastest_bytes].map((bytes) => cell(size(bytes), "number")),
    cell(duration(row.step_seconds), "number"),
    cell(slower(row.overhead), "number"),
  ]);
  const headings = ["change", "settings", "fits", "#peak", "#min peak", "#fastest", "#step", "#overhead"];
  if (rows.length) fillTable(get("what-if"), headings, cells);
}

function verdictMark(fits) {
  return element("span", { class: fits ? "mark yes" : "mark no" }, fits ? "fits" : "too large");
}

function showBreaks() {
  const lines = report.breaks.map(({ reason, count: times }) =>
    element("li", {}, reason, times > 1 ? ` (${times} times)` : ""),
  );
  get("breaks-card").append(element("ul", {}, ...lines));
  get("breaks-card").hidden = !lines.length;
}

/** What waits on the host and for how long the step waits for that, or why nothing does. */
function offloadFigure({ host_bytes: host, moved_bytes: moved, exposed_seconds: waits, why_not: why }) {
  return ["Offloaded", why ? "nothing" : size(host), why || `${size(moved)} moved, the step waits ${duration(waits)}`];
}
