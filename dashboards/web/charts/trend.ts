// The rate of runs in their order: a dot for each, a mark where another version began, the last one
// larger. A dot leads to its run.
import { go, link } from "../address";
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { TrendRun } from "../types";
import { cut, linear } from "./scale";

const TOP = 16;

const say = (run: TrendRun) =>
  [
    `${run.name || "run"} (${run.id})`,
    numbers.rate(run.rows_per_second, "rows"),
    numbers.moment(run.started_seconds),
    `version ${run.version}`,
    run.tags,
  ]
    .filter((part) => part !== "")
    .join(" · ");

export function trend(width: number, height: number, runs: readonly TrendRun[], label: string) {
  const svg = drawing(width, height, label, "trend");
  const known = runs.map((run) => run.rows_per_second ?? 0);
  const x = linear(0, Math.max(1, runs.length - 1), 6, width - 6);
  const y = linear(0, Math.max(...known) * 1.05 || 1, height - 4, TOP);
  svg.append(s("line", { x1: 0, x2: width, y1: height - 1.5, y2: height - 1.5, class: "rule" }));
  let free = 0; // pixels from which a word has room
  runs.forEach((run, i) => {
    if (i > 0 && run.version === runs[i - 1].version) return;
    const at = i === 0 ? x(0) : (x(i) + x(i - 1)) / 2;
    if (i > 0) {
      svg.append(s("line", { x1: at, x2: at, y1: 2, y2: height - 2, class: "rule dotted" }));
    }
    // At the right edge the word stands before the mark.
    const room = run.version.length * 7 + 8;
    const before = at + room > width;
    const text = (before ? at - room : at) >= free ? cut(run.version, room) : "";
    if (!text) return;
    const side = before
      ? { x: at - 4, class: "end dim" }
      : { x: at + (i > 0 ? 4 : 0), class: "dim" };
    svg.append(s("text", { y: 10, ...side }, text));
    free = at + (before ? 8 : room);
  });
  const line = runs.map(
    (run, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(run.rows_per_second ?? 0).toFixed(1)}`,
  );
  svg.append(s("path", { d: line.join(""), class: "course" }));
  runs.forEach((run, i) => {
    const last = i === runs.length - 1;
    const dot = s("circle", {
      cx: x(i),
      cy: y(run.rows_per_second ?? 0),
      r: last ? 4.5 : 3,
      class: "fill-c dotlink",
      click: () => go(link("overview", run.id)),
    });
    svg.append(withTip(dot, say(run)));
  });
  return svg;
}
