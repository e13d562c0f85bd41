// Two distributions as steps: the share of runs with at most that value. Where one line is to the
// right of the other all the way up, every part of it is larger.
import { drawing, s } from "../element";
import { linear, ticks } from "./scale";

const HEIGHT = 220;
const BOTTOM = 26;

function stepPath(
  values: readonly number[],
  x: (v: number) => number,
  y: (p: number) => number,
  to: number,
) {
  const sorted = [...values].sort((a, b) => a - b);
  let path = "";
  sorted.forEach((value, i) => {
    path += `${path ? "H" : `M${x(value).toFixed(1)} ${y(0).toFixed(1)}H`}${x(value).toFixed(1)}`;
    path += `V${y((i + 1) / sorted.length).toFixed(1)}`;
  });
  return path ? `${path}H${to}` : "";
}

export function ecdf(
  width: number,
  a: readonly number[],
  b: readonly number[],
  format: (value: number) => string,
  label: string,
) {
  const svg = drawing(width, HEIGHT, label, "ecdf");
  const all = [...a, ...b];
  if (all.length === 0) return svg;
  const low = Math.min(...all);
  const high = Math.max(...all);
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  const left = 44;
  const right = width - 8;
  const x = linear(low - pad, high + pad, left, right);
  const y = linear(0, 1, HEIGHT - BOTTOM, 10);
  for (const share of [0, 0.5, 1]) {
    svg.append(
      s("line", { x1: left, x2: right, y1: y(share), y2: y(share), class: "rule faint" }),
      s("text", { x: left - 8, y: y(share) + 4, class: "end dim" }, `${share * 100} %`),
    );
  }
  let free = -Infinity;
  for (const tick of ticks(low, high, Math.max(2, Math.floor(width / 110)))) {
    const text = format(tick);
    const half = text.length * 3.4;
    const at = Math.min(right - half, Math.max(left + half, x(tick)));
    if (at - half < free) continue;
    svg.append(s("text", { x: at, y: HEIGHT - 6, class: "middle dim" }, text));
    free = at + half + 8;
  }
  svg.append(
    s("path", { d: stepPath(a, x, y, right), class: "side side-a" }),
    s("path", { d: stepPath(b, x, y, right), class: "side side-b" }),
  );
  return svg;
}
