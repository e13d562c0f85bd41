// How long steps took: a logarithmic axis of time, with the median and the 99th percentile. Heights
// are square roots of counts, so that the rare slow steps can be seen beside the many others.
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { Bucket } from "../types";
import { linear, logTicks } from "./scale";

const HEIGHT = 116;
const BOTTOM = 18;
const TOP = 20;
const PER_OCTAVE = 6;

const binOf = (seconds: number) => Math.floor(Math.log2(seconds) * PER_OCTAVE);
const edgeOf = (bin: number) => 2 ** (bin / PER_OCTAVE);

function binned(buckets: readonly Bucket[]): Map<number, number> {
  const bins = new Map<number, number>();
  for (const [seconds, count] of buckets) {
    if (!(seconds > 0) || !(count > 0)) continue;
    const bin = binOf(seconds);
    bins.set(bin, (bins.get(bin) ?? 0) + count);
  }
  return bins;
}

export function steps(
  width: number,
  buckets: readonly Bucket[],
  p50: number | null,
  p99: number | null,
  label: string,
) {
  const svg = drawing(width, HEIGHT, label, "steps");
  const bins = binned(buckets);
  if (bins.size === 0) return svg;
  const low = Math.min(...bins.keys());
  const high = Math.max(...bins.keys()) + 1;
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
  // The two labels part to the left and to the right.
  const marked = [
    { text: `p50 ${numbers.seconds(p50)}`, value: p50, turned: true },
    { text: `p99 ${numbers.seconds(p99)}`, value: p99, turned: false },
  ];
  for (const { text, value, turned } of marked) {
    if (value === null || !(value > 0)) continue;
    const at = Math.min(width, Math.max(0, place(value)));
    const room = text.length * 6.8 + 6;
    const left = turned ? at > room : at + room > width;
    svg.append(
      s("line", { x1: at, x2: at, y1: 14, y2: base, class: "mark dashed" }),
      s("text", { x: left ? at - 4 : at + 4, y: 11, class: left ? "end strong" : "strong" }, text),
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
