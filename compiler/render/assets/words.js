// Numbers as text, and DOM elements with text content only: strings in a report come from untrusted code.
"use strict";
const report = JSON.parse(document.getElementById("report").textContent);
const OPTIMIZER = "optimizer state";

function size(bytes) {
  for (const [unit, one, digits] of [["GiB", 2 ** 30, 2], ["MiB", 2 ** 20, 1], ["KiB", 2 ** 10, 1]])
    if (Math.abs(bytes) >= one) return `${(bytes / one).toFixed(digits)} ${unit}`;
  return `${Math.trunc(bytes)} B`;
}

function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(seconds >= 0.1 ? 0 : 2)} ms`;
  return `${(seconds * 1e6).toFixed(1)} µs`;
}

function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

function slower(share) {
  if (Math.abs(share) <= 0.0005) return "none";
  return `${share > 0 ? "+" : ""}${percent(share)}`;
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** 43014144 -> "43.0 M". */
function many(number) {
  for (const [unit, one] of [["B", 1e9], ["M", 1e6], ["K", 1e3]])
    if (number >= one) return `${(number / one).toFixed(number >= 100 * one ? 0 : 2)} ${unit}`;
  return String(number);
}

function get(id) {
  return document.getElementById(id);
}

/** Children are nodes or strings; a string only ever becomes text. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

function cell(text, kind = null) {
  return element("td", { class: kind }, text);
}

/** A heading that starts with "#" is of a column of numbers. */
function fillTable(table, headings, rows) {
  const titles = headings.map((text) =>
    element("th", { scope: "col", class: text.startsWith("#") ? "number" : null }, text.replace("#", "")),
  );
  table.replaceChildren(
    element("thead", {}, element("tr", {}, ...titles)),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells))),
  );
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function kindVariable(kind) {
  return `--kind-${kind.toLowerCase().replace(/[^a-z]+/g, "-")}`;
}

function colour(kind) {
  return variable(kindVariable(kind)) || variable("--kind-other");
}

/** A label with a dot in the colour of its kind; CSS variables make it follow the theme. */
function chip(text, kind = text) {
  const dot = element("i", { class: "dot", style: `background: var(${kindVariable(kind)}, var(--kind-other))` });
  return element("span", { class: "chip" }, dot, text);
}

/** Plotly interprets some HTML in labels, so it is escaped. */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function moduleName(name) {
  return name || "(the model itself)";
}

function place(tensor) {
  return tensor.file ? `${tensor.file}:${tensor.line}` : "";
}

/** The largest unit that the largest value reaches. */
function unitFor(largest, units) {
  return units.find(([, one]) => largest >= one) ?? units[units.length - 1];
}

const BYTE_UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
const TIME_UNITS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]];
