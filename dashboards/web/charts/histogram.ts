// Bars of a histogram whose buckets double, lying: the bucket's lower edge, the bar, its share.
import { drawing, s } from "../element";
import { percent } from "../numbers";
import type { Bucket } from "../types";

const ROW = 19;
const LEFT = 66;
const RIGHT = 58;

export function histogram(
  width: number,
  buckets: readonly Bucket[],
  name: (edge: number) => string,
  tone: "c" | "b",
  label: string,
) {
  const total = buckets.reduce((sum, bucket) => sum + bucket[1], 0) || 1;
  const most = Math.max(1, ...buckets.map((bucket) => bucket[1]));
  const svg = drawing(width, buckets.length * ROW + 2, label, "histogram");
  buckets.forEach(([edge, count], index) => {
    const y = index * ROW;
    const length = (count / most) * Math.max(0, width - LEFT - RIGHT);
    svg.append(
      s("text", { x: LEFT - 10, y: y + 13, class: "end" }, name(edge)),
      s("rect", {
        x: LEFT,
        y: y + 3,
        height: ROW - 6,
        rx: 2,
        width: count > 0 ? Math.max(1.5, length) : 0,
        class: `fill-${tone}`,
      }),
      s("text", { x: width, y: y + 13, class: "end dim" }, count > 0 ? percent(count / total) : ""),
    );
  });
  return svg;
}
