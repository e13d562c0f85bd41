// A chart as a file: SVG as it is seen, with its colours and type in the file; CSV with all digits.
import type { Table } from "./cards/table";

const NS = "http://www.w3.org/2000/svg";
// What a drawing takes from the style sheet, and a file has to carry itself.
const INHERITED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-opacity",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "visibility",
];

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

// A copy of a drawing whose elements carry their computed style.
function inlined(svg: SVGSVGElement, x: number, y: number): SVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const property of INHERITED) {
      const value = style.getPropertyValue(property);
      if (value && value !== "none" && value !== "normal") to[i].setAttribute(property, value);
    }
    if (style.getPropertyValue("fill") === "none") to[i].setAttribute("fill", "none");
    to[i].removeAttribute("class");
    to[i].removeAttribute("tabindex");
    to[i].removeAttribute("style");
  });
  copy.setAttribute("x", String(x));
  copy.setAttribute("y", String(y));
  return copy;
}

const transparent = (colour: string) => colour === "transparent" || /, 0\)$/.test(colour);

// A box with a ground or an edge.
function boxOf(node: Element, origin: DOMRect): SVGElement | null {
  const style = getComputedStyle(node);
  const ground = transparent(style.backgroundColor)
    ? style.backgroundImage === "none"
      ? "none"
      : style.getPropertyValue("--accent-soft")
    : style.backgroundColor;
  const edge = parseFloat(style.borderTopWidth) > 0 && parseFloat(style.borderLeftWidth) > 0;
  const rect = node.getBoundingClientRect();
  if ((ground === "none" && !edge) || rect.width === 0 || rect.height === 0) return null;
  return element("rect", {
    x: rect.left - origin.left,
    y: rect.top - origin.top,
    width: rect.width,
    height: rect.height,
    rx: parseFloat(style.borderTopLeftRadius) || 0,
    fill: ground,
    stroke: edge ? style.borderTopColor : "none",
    "stroke-width": edge ? style.borderTopWidth : 0,
  });
}

// The words of a text node, each where the browser put it.
function wordsOf(node: Text, origin: DOMRect): SVGElement[] {
  const style = getComputedStyle(node.parentElement as Element);
  const range = document.createRange();
  const out: SVGElement[] = [];
  for (const match of (node.textContent ?? "").matchAll(/\S+/g)) {
    range.setStart(node, match.index ?? 0);
    range.setEnd(node, (match.index ?? 0) + match[0].length);
    const rect = range.getBoundingClientRect();
    if (rect.width === 0) continue;
    const word = element("text", {
      x: rect.left - origin.left,
      y: rect.top - origin.top + rect.height * 0.78,
      fill: style.color,
      "font-family": style.fontFamily,
      "font-size": style.fontSize,
      "font-weight": style.fontWeight,
    });
    word.textContent = match[0];
    out.push(word);
  }
  return out;
}

// Everything within `node`: drawings, boxes and words, at their places.
function collect(node: Node, origin: DOMRect, into: SVGElement): void {
  if (node instanceof SVGSVGElement) {
    const rect = node.getBoundingClientRect();
    if (rect.width > 0) into.append(inlined(node, rect.left - origin.left, rect.top - origin.top));
    return;
  }
  if (node instanceof Text) {
    into.append(...wordsOf(node, origin));
    return;
  }
  if (!(node instanceof HTMLElement) || node.classList.contains("vh")) return;
  const box = boxOf(node, origin);
  if (box) into.append(box);
  for (const child of node.childNodes) collect(child, origin, into);
}

export function svgText(chart: HTMLElement): string {
  const origin = chart.getBoundingClientRect();
  const margin = 16;
  const width = Math.ceil(origin.width) + 2 * margin;
  const height = Math.ceil(origin.height) + 2 * margin;
  const root = element("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}` });
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  root.append(element("rect", { width, height, fill: ground || "#fff" }));
  const body = element("g", { transform: `translate(${margin} ${margin})` });
  for (const child of chart.childNodes) collect(child, origin, body);
  root.append(body);
  return new XMLSerializer().serializeToString(root);
}

// A field that begins like a formula is quoted as text: spreadsheets would run it.
function field(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csvText(table: Table): string {
  const head = table.columns.map((column) => field(column.title)).join(",");
  return [head, ...table.rows.map((row) => row.map(field).join(","))].join("\r\n") + "\r\n";
}

export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name.replace(/[^\w.-]+/g, "-");
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
