// How long steps took: a logarithmic axis of time, with the median and the 99th percentile. Heights
// are square roots of counts, so that the rare slow steps can be seen beside the many others.
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { Bucket } from "../types";
import { linear, logTicks } from "./scale";

const HEIGHT = 128;
const BOTTOM = 18;
const TOP = 34;
const PER_OCTAVE = 6;
// Shares of the steps at the two ends that may be cut off: one step of a microsecond at the beginning
// of a run would squeeze all others into a corner.
const SHORTEST = 0.005;
const LONGEST = 0.0005;

const binOf = (seconds: number) => Math.floor(Math.log2(seconds) * PER_OCTAVE);
const edgeOf = (bin: number) => 2 ** (bin / PER_OCTAVE);

interface Bins {
  counts: Map<number, number>;
  low: number;
  high: number; // one after the last
  below: number; // steps that are not drawn
  above: number;
}

function binned(buckets: readonly Bucket[]): Bins | null {
  const counts = new Map<number, number>();
  let all = 0;
  for (const [seconds, count] of buckets) {
    if (!(seconds > 0) || !(count > 0)) continue;
    const bin = binOf(seconds);
    counts.set(bin, (counts.get(bin) ?? 0) + count);
    all += count;
  }
  const bins = [...counts.keys()].sort((a, b) => a - b);
  if (bins.length === 0) return null;
  let below = 0;
  while (bins.length > 1 && below + (counts.get(bins[0]) ?? 0) <= all * SHORTEST) {
    below += counts.get(bins.shift() as number) ?? 0;
  }
  let above = 0;
  while (bins.length > 1 && above + (counts.get(bins[bins.length - 1]) ?? 0) <= all * LONGEST) {
    above += counts.get(bins.pop() as number) ?? 0;
  }
  for (const bin of counts.keys()) if (!bins.includes(bin)) counts.delete(bin);
  return { counts, low: bins[0], high: bins[bins.length - 1] + 1, below, above };
}

// What is not drawn, in words; empty where all is.
export function stepsLeftOut(buckets: readonly Bucket[]): string {
  const bins = binned(buckets);
  if (!bins) return "";
  const parts: string[] = [];
  if (bins.below > 0)
    parts.push(`${numbers.plural(bins.below, "step")} under ${numbers.seconds(edgeOf(bins.low))}`);
  if (bins.above > 0)
    parts.push(`${numbers.plural(bins.above, "step")} over ${numbers.seconds(edgeOf(bins.high))}`);
  return parts.length > 0 ? `Not drawn: ${parts.join(", ")}.` : "";
}

export function steps(
  width: number,
  buckets: readonly Bucket[],
  p50: number | null,
  p99: number | null,
  label: string,
) {
  const svg = drawing(width, HEIGHT, label, "steps");
  const found = binned(buckets);
  if (!found) return svg;
  const { counts: bins, low, high } = found;
  const tallest = Math.max(...bins.values());
  const base = HEIGHT - BOTTOM;
  const x = linear(low, high, 0, width);
  const column = width / (high - low);
  for (const [bin, count] of bins) {
    const height = Math.sqrt(count / tallest) * (base - TOP);
    const bar = s("rect", {
      x: x(bin) + 0.5,
      width: Math.max(1, column - 1),
      y: base - height,
      height,
      class: "fill-compute",
    });
    const range = `${numbers.seconds(edgeOf(bin))} to ${numbers.seconds(edgeOf(bin + 1))}`;
    svg.append(withTip(bar, `${range}: ${numbers.plural(count, "step")}`));
  }
  svg.append(s("line", { x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5, class: "rule" }));
  const place = (seconds: number) => x(Math.log2(seconds) * PER_OCTAVE);
  const marked = [
    { text: `p50 ${numbers.seconds(p50)}`, value: p50, y: 11 },
    { text: `p99 ${numbers.seconds(p99)}`, value: p99, y: 26 },
  ];
  for (const { text, value, y } of marked) {
    if (value === null || !(value > 0)) continue;
    const at = Math.min(width, Math.max(0, place(value)));
    const left = at + text.length * 6.8 + 6 > width;
    svg.append(
      s("line", { x1: at, x2: at, y1: y - 9, y2: base, class: "mark dashed" }),
      s("text", { x: left ? at - 4 : at + 4, y, class: left ? "end strong" : "strong" }, text),
    );
  }
  let free = 0;
  for (const tick of logTicks(edgeOf(low), edgeOf(high), Math.max(3, Math.floor(width / 64)))) {
    const at = place(tick);
    if (at < 16 || at > width - 16 || at < free) continue;
    const text = numbers.seconds(tick).replace(/\.0+(?=\D)|(\.\d*?)0+(?=\D)/, "$1");
    svg.append(s("text", { x: at, y: HEIGHT - 4, class: "middle dim" }, text));
    free = at + text.length * 7 + 8;
  }
  return svg;
}
