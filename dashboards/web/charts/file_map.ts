// The bytes of a stripe in the order of the file, line after line as words are: what is wanted, what
// is read over, what is skipped; below the bytes a line for each read, above them the columns.
import { drawing, s, withTip } from "../element";
import * as numbers from "../numbers";
import type { LayoutReads, LayoutStreams } from "../types";
import { cut } from "./scale";

const LEFT = 74;
const LINE = 36; // pixels from one line to the next
const TOP = 15; // of the bytes within a line: the names stand above
const BAR = 12;

type Fate = "wi" | "wo" | "c";

export const FATES: readonly { class: string; text: string }[] = [
  { class: "fill-c", text: "wanted" },
  { class: "fill-wo", text: "read over: in a hole between wanted bytes" },
  { class: "fill-wi", text: "skipped" },
  { class: "fill-ink", text: "one read" },
];

interface Piece {
  from: number;
  to: number;
  fate: Fate;
}

// Of a piece that is not read whole, the parts in this order.
function piecesOf(streams: LayoutStreams): Piece[] {
  const pieces: Piece[] = [];
  const add = (from: number, length: number, fate: Fate) => {
    if (length <= 0) return;
    const last = pieces[pieces.length - 1];
    if (last && last.fate === fate && last.to === from) last.to += length;
    else pieces.push({ from, to: from + length, fate });
  };
  streams.offset.forEach((from, i) => {
    const { [i]: stored } = streams.stored;
    const wanted = Math.min(stored, streams.wanted[i]);
    const over = Math.min(stored - wanted, streams.over[i]);
    add(from, wanted, "c");
    add(from + wanted, over, "wo");
    add(from + wanted + over, stored - wanted - over, "wi");
  });
  return pieces;
}

export function nameOf(streams: LayoutStreams, index: number): string {
  const area = streams.names[streams.area[index]];
  if (area === "none") return "no stream that this run could read";
  const column = streams.names[streams.column[index]];
  const key = streams.names[streams.key[index]];
  const name = key ? `${column}[${key}]` : column || "several columns";
  return area === "index" ? `row index of ${name}` : name;
}

// What the place belongs to, in few words: "row index", a column.
function groupOf(streams: LayoutStreams, index: number): string {
  const area = streams.names[streams.area[index]];
  if (area === "index") return "row index";
  return area === "none" ? "" : streams.names[streams.column[index]];
}

interface Frame {
  begin: number; // of the first byte
  perLine: number; // bytes
  room: number; // pixels of a line
}

// The parts of [from, to) by lines, in pixels.
function onLines(frame: Frame, from: number, to: number): [line: number, x: number, w: number][] {
  const out: [number, number, number][] = [];
  const end = to - frame.begin;
  for (let at = from - frame.begin; at < end; ) {
    const line = Math.floor(at / frame.perLine);
    const until = Math.min(end, (line + 1) * frame.perLine);
    const x = ((at - line * frame.perLine) / frame.perLine) * frame.room;
    out.push([line, LEFT + x, ((until - at) / frame.perLine) * frame.room]);
    at = until;
  }
  return out;
}

const short = (value: number) => String(Number(value.toFixed(2)));

function fates(frame: Frame, streams: LayoutStreams): SVGElement[] {
  const paths: Record<Fate, string[]> = { wi: [], wo: [], c: [] };
  for (const piece of piecesOf(streams)) {
    for (const [line, x, w] of onLines(frame, piece.from, piece.to)) {
      paths[piece.fate].push(`M${short(x)} ${line * LINE + TOP}h${short(w)}v${BAR}h${short(-w)}z`);
    }
  }
  return (["wi", "wo", "c"] as const).map((fate) =>
    s("path", { d: paths[fate].join(""), class: `fill-${fate}` }),
  );
}

// A read has a gap at its end, so that two that touch are two.
function readLines(frame: Frame, reads: LayoutReads): SVGElement {
  const parts: string[] = [];
  reads.offset.forEach((from, i) => {
    const on = onLines(frame, from, from + reads.bytes[i]);
    on.forEach(([line, x, w], part) => {
      const last = part === on.length - 1;
      const length = Math.max(0.8, last ? w - 1.2 : w);
      parts.push(
        `M${short(x)} ${line * LINE + TOP + BAR + 2}h${short(length)}v2h${short(-length)}z`,
      );
    });
  });
  return s("path", { d: parts.join(""), class: "fill-ink" });
}

function groups(frame: Frame, streams: LayoutStreams): SVGElement[] {
  const out: SVGElement[] = [];
  let first = 0;
  const put = (until: number) => {
    const name = groupOf(streams, first);
    const from = streams.offset[first];
    const to = streams.offset[until - 1] + streams.stored[until - 1];
    if (!name || !(to > from)) return;
    const [line, x, w] = onLines(frame, from, to)[0];
    const text = cut(name, w - 4);
    if (!text) return;
    const y = line * LINE + TOP - 4;
    out.push(s("text", { x: x + 1, y, class: "dim" }, text));
  };
  for (let i = 1; i <= streams.offset.length; i++) {
    if (i < streams.offset.length && groupOf(streams, i) === groupOf(streams, first)) continue;
    put(i);
    first = i;
  }
  return out;
}

// The piece at a byte of the file; -1 beside them.
function pieceAt(streams: LayoutStreams, byte: number): number {
  let low = 0;
  let high = streams.offset.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (streams.offset[middle] + streams.stored[middle] <= byte) low = middle + 1;
    else high = middle;
  }
  return low < streams.offset.length && streams.offset[low] <= byte ? low : -1;
}

function say(streams: LayoutStreams, index: number): string {
  const stored = streams.stored[index];
  const part = (bytes: number, word: string) =>
    bytes <= 0 ? "" : bytes === stored ? word : `${numbers.bytes(bytes)} ${word}`;
  const wanted = streams.wanted[index];
  const over = streams.over[index];
  const words = [
    part(wanted, "wanted"),
    part(over, "read over"),
    part(stored - wanted - over, "skipped"),
  ];
  const fate = words.filter((word) => word !== "").join(", ");
  return `${nameOf(streams, index)} · ${numbers.bytes(stored)} · ${fate}`;
}

export function fileMap(
  width: number,
  streams: LayoutStreams,
  reads: LayoutReads,
  label: string,
): SVGSVGElement {
  const count = streams.offset.length;
  const begin = streams.offset[0];
  const bytes = streams.offset[count - 1] + streams.stored[count - 1] - begin;
  const room = Math.max(60, width - LEFT);
  // Some pixels for each piece, as far as a screen has them.
  const lines = Math.min(16, Math.max(3, Math.round((count * 4) / room)));
  const frame: Frame = { begin, perLine: Math.max(1, bytes / lines), room };
  const svg = drawing(width, lines * LINE, label, "file-map");
  for (let line = 0; line < lines; line++) {
    const at = numbers.bytes(line * frame.perLine);
    svg.append(s("text", { x: LEFT - 10, y: line * LINE + TOP + 10, class: "end dim" }, at));
  }
  svg.append(...fates(frame, streams), readLines(frame, reads), ...groups(frame, streams));
  let pointed = -1;
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const scale = box.width > 0 ? width / box.width : 1;
    const line = Math.floor(((event.clientY - box.top) * scale) / LINE);
    const x = (event.clientX - box.left) * scale - LEFT;
    pointed =
      x < 0 ? -1 : pieceAt(streams, begin + line * frame.perLine + (x / room) * frame.perLine);
  });
  return withTip(svg, () => (pointed < 0 ? numbers.bytes(bytes) : say(streams, pointed)));
}
