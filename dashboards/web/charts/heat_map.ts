// Requests by size (to the right) and latency (upwards), in steps that double: the more there are in a
// field, the stronger its colour, by the logarithm of their number.
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { JointHistogram } from "../types";

const LEFT = 74;
const BOTTOM = 22;
const ROW = 24;
const TEXT = 40; // pixels that a number needs

const steps = (values: readonly number[]) => {
  const low = Math.round(Math.log2(Math.min(...values)));
  const high = Math.round(Math.log2(Math.max(...values)));
  return { low, count: high - low + 1 };
};

// Edges double, so they are whole numbers of their unit: 64 KiB, not 64.0 KiB.
const whole = (text: string) => text.replace(/\.0+(?=\D|$)/, "");
export const sizeEdge = (size: number) => whole(numbers.bytes(size));
export const latencyEdge = (seconds: number) => {
  const text = numbers.seconds(seconds);
  return seconds >= 1e-9 ? text.replace(/^(\d{2,})\.\d+/, "$1") : text;
};

export function heatMap(width: number, of: JointHistogram, label: string): SVGSVGElement {
  // Latencies are powers of two of nanoseconds.
  const nanoseconds = of.latency.map((latency) => Math.max(1, Math.round(latency * 1e9)));
  const x = steps(of.size.map((size) => Math.max(1, size)));
  const y = steps(nanoseconds);
  const column = Math.min(72, (width - LEFT) / x.count);
  const most = Math.max(...of.count);
  const height = y.count * ROW;
  const svg = drawing(width, height + BOTTOM, label, "heat");
  svg.append(s("rect", { x: LEFT, y: 0, width: column * x.count, height, class: "frame" }));
  of.count.forEach((count, i) => {
    const at = Math.round(Math.log2(Math.max(1, of.size[i]))) - x.low;
    const up = Math.round(Math.log2(nanoseconds[i])) - y.low;
    const strength = 0.1 + 0.9 * (Math.log(count + 1) / Math.log(most + 1));
    const left = LEFT + at * column;
    const top = height - (up + 1) * ROW;
    const words = `${sizeEdge(of.size[i])} to ${sizeEdge(2 * of.size[i])}, ${latencyEdge(of.latency[i])} to ${latencyEdge(2 * of.latency[i])}: ${numbers.plural(count, "request")}`;
    const field = s("rect", {
      x: left + 0.5,
      y: top + 0.5,
      width: column - 1,
      height: ROW - 1,
      class: "fill-c",
      "fill-opacity": strength.toFixed(3),
    });
    svg.append(withTip(field, words));
    if (column >= TEXT) {
      const text = { x: left + column / 2, y: top + ROW / 2 + 4, class: "middle cell" };
      svg.append(
        s(
          "text",
          { ...text, class: strength > 0.55 ? "middle on" : "middle off" },
          numbers.count(count),
        ),
      );
    }
  });
  for (let i = 0; i < y.count; i++) {
    const name = latencyEdge(2 ** (y.low + i) / 1e9);
    svg.append(s("text", { x: LEFT - 10, y: height - i * ROW + 4, class: "end dim" }, name));
  }
  const every = Math.max(1, Math.ceil(54 / column));
  for (let i = 0; i < x.count; i += every) {
    const name = sizeEdge(2 ** (x.low + i));
    svg.append(s("text", { x: LEFT + i * column, y: height + 16, class: "dim" }, name));
  }
  return svg;
}
