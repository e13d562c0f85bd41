// The resource ladder: the rate that each resource alone would allow, with its interval, on a
// logarithmic axis; the rate observed and the rate wanted as two lines.
import { drawing, s } from "../element";
import * as numbers from "../numbers";
import { cut, logarithmic } from "./scale";

export interface LadderRow {
  name: string;
  short: string; // where there is little room
  rate: number | null;
  low?: number | null;
  high?: number | null;
  limit: boolean;
  note: string; // why there is no rate
  known?: boolean; // the note says what was measured instead
}

export interface LadderLines {
  rate: number | null;
  rateName: string; // "observed", "predicted"
  wanted: number | null;
}

const ROW = 31;
const TOP = 40;

interface Frame {
  left: number;
  right: number; // position of the numbers' end
  x: (rate: number) => number;
  narrow: boolean;
  width: number;
}

// A rate of 0 has no place on a logarithmic axis.
const placed = (row: LadderRow): row is LadderRow & { rate: number } =>
  row.rate !== null && row.rate > 0;

function frameOf(width: number, rows: readonly LadderRow[], lines: LadderLines): Frame {
  const narrow = width < 480;
  const longest = Math.max(8, ...rows.map((row) => (narrow ? row.short : row.name).length));
  const left = Math.min(narrow ? 96 : 190, longest * 7 + 14);
  const right = narrow ? 60 : 150;
  const values: number[] = [];
  for (const row of rows.filter(placed))
    values.push(row.rate, row.low || row.rate, row.high || row.rate);
  for (const line of [lines.rate, lines.wanted]) if (line) values.push(line);
  const low = Math.min(...values) * 0.86;
  const high = Math.max(...values) * 1.06;
  return { left, right: width, x: logarithmic(low, high, left + 4, width - right), narrow, width };
}

function known(frame: Frame, row: LadderRow & { rate: number }, y: number) {
  const { x } = frame;
  const tone = row.limit ? "accent" : "c";
  const low = row.low ?? 0;
  const band =
    low > 0 && row.high
      ? s("line", { x1: x(low), x2: x(row.high), y1: y, y2: y, class: `band stroke-${tone}` })
      : null;
  const interval = frame.narrow ? "" : numbers.interval(row.low, row.high);
  return [
    s("line", { x1: frame.left, x2: x(row.rate), y1: y, y2: y, class: "rule" }),
    band,
    s("circle", { cx: x(row.rate), cy: y, r: 4.5, class: `fill-${tone}` }),
    s(
      "text",
      { x: frame.right, y: y + 4, class: row.limit ? "end strong accent" : "end strong" },
      numbers.rateNumber(row.rate),
      interval ? s("tspan", { class: "dim" }, `  ${interval}`) : null,
    ),
  ];
}

// A vertical line with its words, which stand on the side that has room for them.
function flag(
  frame: Frame,
  rate: number,
  text: string,
  y: number,
  bottom: number,
  dashed: boolean,
) {
  const at = frame.x(rate);
  const turned = at + text.length * 6.8 + 8 > frame.width;
  return [
    s("line", { x1: at, x2: at, y1: y - 9, y2: bottom, class: dashed ? "mark dashed" : "mark" }),
    s("text", { x: turned ? at - 6 : at + 6, y, class: turned ? "end strong" : "strong" }, text),
  ];
}

export function ladder(
  width: number,
  rows: readonly LadderRow[],
  lines: LadderLines,
  label: string,
) {
  const first = rows.filter(placed);
  const ordered: LadderRow[] = [...first, ...rows.filter((row) => !placed(row))];
  const svg = drawing(width, TOP + ordered.length * ROW + 6, label, "ladder");
  if (first.length === 0) return svg;
  const frame = frameOf(width, ordered, lines);
  const bottom = TOP + first.length * ROW - 2;
  if (lines.rate) {
    const to = frame.x(lines.rate);
    svg.append(
      s("rect", {
        x: frame.left,
        y: TOP - 6,
        width: Math.max(0, to - frame.left),
        height: bottom - TOP + 6,
        class: "fill-page",
      }),
    );
  }
  ordered.forEach((row, index) => {
    const y = TOP + index * ROW + ROW / 2;
    const name = frame.narrow ? row.short : row.name;
    const tone = row.limit ? "strong accent" : "name";
    svg.append(s("text", { x: 0, y: y + 4, class: tone }, cut(name, frame.left - 6)));
    if (placed(row)) {
      for (const node of known(frame, row, y)) if (node) svg.append(node);
    } else {
      const why = frame.narrow && !row.known ? "not measured" : row.note || "not measured";
      const text = cut(why, width - frame.left);
      svg.append(s("text", { x: frame.left + 6, y: y + 4, class: "dim" }, text));
    }
  });
  if (lines.rate) {
    const text = `${lines.rateName} ${numbers.rateNumber(lines.rate)}`;
    svg.append(...flag(frame, lines.rate, text, 10, bottom, false));
  }
  const apart =
    lines.wanted && (!lines.rate || Math.abs(frame.x(lines.wanted) - frame.x(lines.rate)) > 3);
  if (lines.wanted && apart) {
    const text = `wanted ${numbers.rateNumber(lines.wanted)}`;
    svg.append(...flag(frame, lines.wanted, text, 26, bottom, true));
  }
  return svg;
}
