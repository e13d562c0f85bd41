// A course as a thin line, over the shared range of time.
import { drawing, s } from "../element";
import type { Figure } from "../types";
import { linear } from "./scale";

export interface SparkData {
  t: readonly number[];
  d: readonly number[];
  v: readonly Figure[];
}

export interface SparkOptions {
  from: number;
  to: number;
  top: number | null; // value of the upper edge; null: the largest that is seen
  height: number;
  at?: number | null; // cursor
}

// Windows that follow each other without a gap or an unknown value, as [first, last].
export function stretches(data: SparkData): [number, number][] {
  const found: [number, number][] = [];
  let first = -1;
  for (let i = 0; i <= data.t.length; i++) {
    const here = i < data.t.length && typeof data.v[i] === "number";
    const joined =
      i === 0 ||
      i >= data.t.length ||
      data.t[i] - (data.t[i - 1] + data.d[i - 1]) < 0.5 * data.d[i];
    if (first >= 0 && (!here || !joined)) {
      found.push([first, i - 1]);
      first = -1;
    }
    if (first < 0 && here) first = i;
  }
  return found;
}

// Puts the cursor of a spark where `view` has it, without drawing the course again.
export function moveCursor(svg: SVGSVGElement, view: SparkOptions): void {
  const line = svg.querySelector(".cursor");
  const { at, from, to } = view;
  const seen = at !== null && at !== undefined && at >= from && at <= to;
  line?.setAttribute("class", seen ? "cursor" : "cursor hidden");
  if (!line || !seen) return;
  const x = linear(from, to, 0, svg.viewBox.baseVal.width)(at);
  line.setAttribute("x1", String(x));
  line.setAttribute("x2", String(x));
}

// At most about one window for each two pixels: the mean of those that fall together.
function thinned(data: SparkData, from: number, to: number, width: number): SparkData {
  const seen = data.t
    .map((_, i) => i)
    .filter((i) => data.t[i] + data.d[i] >= from && data.t[i] <= to);
  const most = Math.max(10, Math.floor(width / 2));
  if (seen.length <= most) return data;
  const each = Math.ceil(seen.length / most);
  const t: number[] = [];
  const d: number[] = [];
  const v: Figure[] = [];
  for (let first = 0; first < seen.length; first += each) {
    const group = seen.slice(first, first + each);
    const last = group[group.length - 1];
    const known = group
      .map((i) => data.v[i])
      .filter((value): value is number => typeof value === "number");
    t.push(data.t[group[0]]);
    d.push(data.t[last] + data.d[last] - data.t[group[0]]);
    v.push(known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null);
  }
  return { t, d, v };
}

export function spark(width: number, whole: SparkData, options: SparkOptions) {
  const { from, to, height } = options;
  const data = thinned(whole, from, to, width);
  const svg = drawing(width, height, null, "spark");
  const seen = data.v.filter((_, i) => data.t[i] + data.d[i] >= from && data.t[i] <= to);
  const most = Math.max(0, ...seen.map((value) => value ?? 0));
  const top = options.top ?? (most > 0 ? most * 1.08 : 1);
  const x = linear(from, to, 0, width);
  const y = linear(0, Math.max(top, Number.MIN_VALUE), height - 2, 4);
  const held = (at: number) => Math.min(width, Math.max(0, x(at))).toFixed(1);
  svg.append(s("line", { x1: 0, x2: width, y1: height - 1.5, y2: height - 1.5, class: "rule" }));
  if (options.top !== null && height > 24) {
    svg.append(s("line", { x1: 0, x2: width, y1: 4, y2: 4, class: "rule dotted" }));
  }
  let lines = "";
  let areas = "";
  for (const [first, last] of stretches(data)) {
    let line = "";
    for (let i = first; i <= last; i++) {
      const begin = data.t[i];
      const end = begin + data.d[i];
      if (end < from || begin > to) continue;
      const up = y(Math.min(top, data.v[i] ?? 0)).toFixed(1);
      line += `${line ? "L" : "M"}${held(begin)} ${up}H${held(end)}`;
    }
    if (!line) continue;
    const base = height - 2;
    lines += line;
    areas += `${line}V${base}H${held(data.t[first])}Z`;
  }
  svg.append(s("path", { d: areas, class: "fill-wi" }), s("path", { d: lines, class: "course" }));
  svg.append(s("line", { y1: 0, y2: height, class: "cursor hidden" }));
  moveCursor(svg, options);
  return svg;
}
