// The table of tensors: sorted by a heading, filtered by words, drawn two hundred rows at a time.
const PAGE_ROWS = 200;
const table = { tensors: [], words: [], column: "size", descending: true, rows: PAGE_ROWS };

/** For each heading: the sort key and the cell. Columns of numbers sort the largest first. */
const COLUMNS = {
  decision: [(one) => one.decision, (one) => element("td", {}, chip(one.decision))],
  tensor: [(one) => one.name, (one) => element("td", { class: "name" }, element("code", {}, one.name))],
  size: [(one) => one.bytes, (one) => cell(size(one.bytes), "number")],
  seconds: [(one) => one.seconds, (one) => cell(duration(one.seconds), "number")],
  shape: [
    (one) => one.shape.reduce((product, length) => product * length, 1),
    (one) => element("td", { class: "shape" }, shape(one), element("small", {}, one.dtype)),
  ],
  module: [(one) => one.module, (one) => cell(moduleName(one.module), "module")],
  source: [
    (one) => `${one.file} ${String(one.line).padStart(8, "0")}`,
    (one) => element("td", { class: "source" }, place(one), element("code", {}, one.code)),
  ],
  reason: [(one) => one.reason, (one) => cell(one.reason, "reason")],
};
const NUMERIC = new Set(["size", "seconds", "shape"]);

function prepareTable() {
  const headings = Object.keys(COLUMNS).map((name) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => sortBy(name));
    return element("th", { scope: "col", "data-column": name, class: NUMERIC.has(name) ? "number" : null }, button);
  });
  get("tensors").tHead.replaceChildren(element("tr", {}, ...headings));
  for (const id of ["filter", "decision", "only-peak"]) get(id).addEventListener("input", () => showTensors(PAGE_ROWS));
  get("more").addEventListener("click", () => showTensors(table.rows + PAGE_ROWS));
  const body = get("tensors").tBodies[0];
  for (const event of ["mouseover", "focusin"]) body.addEventListener(event, ({ target }) => inspectRow(target));
  body.addEventListener("mouseleave", () => body.contains(document.activeElement) || forget());
  body.addEventListener("focusout", forget);
  body.addEventListener("keydown", moveFocus);
}

function setTensors(tensors) {
  table.tensors = tensors;
  table.words = tensors.map((one) =>
    [one.name, one.operator, one.module, place(one), one.code, one.reason, one.dtype].join("\n").toLowerCase(),
  );
  const decisions = new Map();
  for (const { decision } of tensors) decisions.set(decision, (decisions.get(decision) ?? 0) + 1);
  const options = [...decisions].map(([name, number]) => element("option", { value: name }, `${name} (${number})`));
  get("decision").replaceChildren(element("option", { value: "" }, "all"), ...options);
  showTensors(PAGE_ROWS);
}

function sortBy(column) {
  table.descending = table.column === column ? !table.descending : NUMERIC.has(column);
  table.column = column;
  showTensors(PAGE_ROWS);
}

function chosenTensors() {
  const wanted = get("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const decision = get("decision").value;
  const found = table.tensors.filter(
    (one, number) =>
      (!decision || one.decision === decision) &&
      (!get("only-peak").checked || one.at_peak) &&
      wanted.every((word) => table.words[number].includes(word)),
  );
  const [key] = COLUMNS[table.column];
  const sign = table.descending ? -1 : 1;
  return found.sort((one, other) => sign * compare(key(one), key(other)));
}

function compare(one, other) {
  if (typeof one === "number") return one - other;
  return one < other ? -1 : one > other ? 1 : 0;
}

function showTensors(rows) {
  table.rows = rows;
  const found = chosenTensors();
  const bytes = found.reduce((sum, one) => sum + one.bytes, 0);
  get("shown").textContent = `${found.length.toLocaleString("en")} of ${count(table.tensors.length, "tensor")}, ${size(bytes)}`;
  get("tensors").tBodies[0].replaceChildren(...found.slice(0, rows).map(tensorRow));
  const left = found.length - rows;
  get("more").hidden = left <= 0;
  get("more").textContent = `Show ${Math.min(left, PAGE_ROWS)} more of ${left.toLocaleString("en")} left`;
  for (const heading of get("tensors").tHead.rows[0].cells) {
    const sorted = heading.dataset.column === table.column;
    if (sorted) heading.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
    else heading.removeAttribute("aria-sort");
  }
}

const tensorOf = new WeakMap();

/** One row is in the Tab order; the arrow keys move the focus from row to row. */
function tensorRow(tensor, number) {
  const cells = Object.values(COLUMNS).map(([, draw]) => draw(tensor));
  const row = element("tr", { tabindex: number === 0 ? 0 : -1 }, ...cells);
  tensorOf.set(row, tensor);
  return row;
}

function inspectRow(target) {
  const tensor = tensorOf.get(target.closest("tr"));
  if (tensor) inspectTensor(tensor);
}

function moveFocus(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const next = step && event.target.closest("tr")[step];
  if (!next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
