// Pairs of runs: a line from A to B for each pair. Lines that all go one way are a change; lines
// that cross are noise.
import { drawing, s, withTip } from "../element";
import { linear, ticks } from "./scale";

export interface Pair {
  a: number;
  b: number;
  text: string; // "pair 3: 1260 to 2280 rows/s"
  left_out: boolean;
}

const HEIGHT = 220;

export function slopes(
  width: number,
  pairs: readonly Pair[],
  format: (value: number) => string,
  higherIsBetter: boolean,
  label: string,
) {
  const svg = drawing(width, HEIGHT, label, "slopes");
  const values = pairs.flatMap((pair) => [pair.a, pair.b]);
  if (values.length === 0) return svg;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const pad = (high - low) * 0.08 || Math.abs(high) * 0.05 || 1;
  const marks = ticks(low, high, 4);
  const left = 18 + 6.6 * Math.max(3, ...marks.map((mark) => format(mark).length));
  const right = width - 36;
  const y = linear(low - pad, high + pad, HEIGHT - 26, 10);
  for (const tick of marks) {
    svg.append(
      s("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), class: "rule faint" }),
      s("text", { x: left - 10, y: y(tick) + 4, class: "end dim" }, format(tick)),
    );
  }
  for (const pair of pairs) {
    const better = (pair.b - pair.a) * (higherIsBetter ? 1 : -1) > 0;
    const tone = pair.left_out ? "slope out" : better ? "slope tone-better" : "slope tone-worse";
    const group = s("g", { class: tone });
    group.append(
      s("line", { x1: left, x2: right, y1: y(pair.a), y2: y(pair.b) }),
      s("circle", { cx: left, cy: y(pair.a), r: 3.5 }),
      s("circle", { cx: right, cy: y(pair.b), r: 3.5 }),
    );
    svg.append(withTip(group, pair.text));
  }
  svg.append(
    s("text", { x: left, y: HEIGHT - 6, class: "middle strong" }, "A"),
    s("text", { x: right, y: HEIGHT - 6, class: "middle strong" }, "B"),
  );
  return svg;
}
