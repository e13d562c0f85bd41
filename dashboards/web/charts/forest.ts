// Changes with their intervals, one row a figure, around a line of no change. An interval that holds
// 0 is grey: it could be no change.
import { drawing, s } from "../element";
import * as numbers from "../numbers";
import { cut, linear, ticks } from "./scale";

export interface ForestRow {
  name: string;
  change: number | null;
  low: number | null;
  high: number | null;
  word: string;
  tone: "better" | "worse" | "none";
  note: string; // why there is no change
  points: boolean; // a difference of shares, not a ratio
}

const ROW = 32;
const TOP = 8;
const BOTTOM = 22;

// Every change is in view; an interval that is much wider than all changes is cut at the edge, so that
// it does not squeeze the others to nothing.
function reach(rows: readonly ForestRow[]): number {
  const known = rows.filter((row) => row.change !== null);
  const changes = Math.max(0, ...known.map((row) => Math.abs(row.change ?? 0)));
  const intervals = Math.max(
    0,
    ...known.map((row) => Math.max(Math.abs(row.low ?? 0), Math.abs(row.high ?? 0))),
  );
  return Math.max(0.02, changes, Math.min(intervals, 2 * changes)) * 1.1;
}

const inPoints = (row: ForestRow, value: number | null) =>
  row.points && value !== null ? numbers.change(value).replace("%", "pt") : numbers.change(value);

export function forest(width: number, rows: readonly ForestRow[], label: string) {
  const narrow = width < 520;
  const left = narrow ? 92 : 130;
  const right = width - (narrow ? 64 : 210);
  const most = reach(rows);
  const x = linear(-most, most, left, right);
  const held = (value: number) => Math.min(right, Math.max(left, x(value)));
  const height = TOP + rows.length * ROW + BOTTOM;
  const base = TOP + rows.length * ROW;
  const svg = drawing(width, height, label, "forest");
  svg.append(s("line", { x1: x(0), x2: x(0), y1: 0, y2: base, class: "mark" }));
  for (const tick of ticks(-most, most, narrow ? 3 : 6)) {
    svg.append(
      s("line", { x1: x(tick), x2: x(tick), y1: base - 3, y2: base + 2, class: "rule" }),
      s(
        "text",
        { x: x(tick), y: base + 16, class: "middle dim" },
        tick === 0 ? "0" : numbers.wholePercent(tick).replace("-", "−"),
      ),
    );
  }
  rows.forEach((row, index) => {
    const y = TOP + index * ROW + ROW / 2;
    svg.append(s("text", { x: 0, y: y + 4, class: "name" }, cut(row.name, left - 6)));
    if (row.change === null) {
      svg.append(
        s(
          "text",
          { x: left + 6, y: y + 4, class: "dim" },
          cut(row.note || "not measured", width - left),
        ),
      );
      return;
    }
    if (row.low !== null && row.high !== null) {
      const band = { x1: held(row.low), x2: held(row.high), y1: y, y2: y };
      svg.append(s("line", { ...band, class: `whisker tone-${row.tone}` }));
    }
    svg.append(s("circle", { cx: held(row.change), cy: y, r: 5, class: `dot tone-${row.tone}` }));
    const interval = numbers.percentInterval(row.low, row.high);
    const said = narrow
      ? [inPoints(row, row.change)]
      : [
          s("tspan", { class: "strong" }, inPoints(row, row.change)),
          s("tspan", { class: "dim" }, cut(` ${interval} ${row.word}`, 150)),
        ];
    svg.append(
      s(
        "text",
        { x: narrow ? width : right + 16, y: y + 4, class: narrow ? "end strong" : "" },
        ...said,
      ),
    );
  });
  return svg;
}
