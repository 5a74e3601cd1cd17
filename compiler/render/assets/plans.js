// The chosen, the smallest and the fastest plan beside the baselines, as a table.
function showPlans() {
  const best = report.fastest_seconds;
  const named = [...frontierPoints().filter((one) => one.name), ...report.baselines];
  const first = named.length - report.baselines.length;
  const rows = named.map((one, number) => [
    element("td", {}, number < first ? "" : element("b", { class: "letter" }, letter(number - first)), planName(one)),
    cell(size(one.peak_bytes), "number"),
    cell(duration(one.step_seconds), "number"),
    cell(slower(one.step_seconds / best - 1), "number"),
    element("td", {}, verdictMark(one.peak_bytes <= report.budget_bytes)),
  ]);
  fillTable(get("plans"), ["plan", "#peak", "#step", "#overhead", "budget"], rows);
}

function planName(one) {
  return one.chosen ? element("b", {}, one.name) : one.name;
}
