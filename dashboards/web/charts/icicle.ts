// An icicle of stacks: the root above, time as width. A frame that is chosen widens to all of it; a
// search marks frames by name. One frame takes the keyboard: arrows move, Enter widens.
import { s, withTip } from "../element";
import * as numbers from "../numbers";
import type { Stacks, StackNode } from "../types";
import { cut } from "./scale";

const ROW = 20;
const LEAST_WIDTH = 0.7; // pixels
const MOST_FRAMES = 500;
const MOST_DEPTH = 120;

// Frames from the root, by their index in `frames`.
export type Trail = readonly number[];

export interface IcicleOptions {
  focus: Trail;
  search: string; // in lower case
  limits: ReadonlySet<string>; // stages and operators to colour
  // Where frames are about more than their own time: their colour, words, and what follows the name.
  look?(node: StackNode, name: string): FrameLook;
  onFocus(trail: Trail): void;
}

export interface FrameLook {
  tone: string;
  words: string;
  change: string;
}

export interface Icicle {
  svg: SVGSVGElement;
  found: number | null; // share of the time in frames with the search's name
}

interface Box {
  node: StackNode;
  depth: number;
  left: number;
  right: number;
  trail: number[];
  parent: Box | null;
}

function tone(name: string, depth: number): string {
  if (depth === 0) return "frame-stage";
  if (depth === 1) return "frame-operator";
  if (/^\[|^_|^sys|^do_|futex|pthread/.test(name)) return "frame-system";
  return /^(headrace::)?reader::/.test(name) ? "frame-own" : "frame-other";
}

// Who takes the batches is the trainer to people.
function frameName(stacks: Stacks, node: StackNode, depth: number): string {
  const name = stacks.frames[node[0]] ?? "";
  return depth <= 1 && name === "consumer" ? "trainer" : name;
}

// The frames that are drawn: those thinner than a pixel are not, nor the thinnest of too many.
function layOut(stacks: Stacks, focus: Trail, width: number): Box[] {
  let least = LEAST_WIDTH;
  let boxes = layOutFrom(stacks, focus, width, least);
  while (boxes.length > MOST_FRAMES && least < width) {
    least *= 1.5;
    boxes = layOutFrom(stacks, focus, width, least);
  }
  return boxes;
}

// A frame's name without what all names of a program begin with; its tip has it all.
function shortName(name: string): string {
  return name
    .replace(/\(anonymous namespace\)::/g, "")
    .replace(/^std::_Function_handler<.*>::_M_invoke.*/, "std::function")
    .replace(/\bheadrace::/g, "");
}

// Frames from the root on that are at least so wide, each parent before its children.
function layOutFrom(stacks: Stacks, focus: Trail, width: number, least: number): Box[] {
  const boxes: Box[] = [];
  const put = (node: StackNode, from: number, to: number, trail: number[], parent: Box | null) => {
    if (to - from < least || trail.length > MOST_DEPTH) return;
    const box: Box = { node, depth: trail.length - 1, left: from, right: to, trail, parent };
    boxes.push(box);
    let at = from;
    for (const child of node[2] ?? []) {
      const share = node[1] > 0 ? child[1] / node[1] : 0;
      put(child, at, at + share * (to - from), [...trail, child[0]], box);
      at += share * (to - from);
    }
  };
  let level: readonly StackNode[] = stacks.roots;
  let parent: Box | null = null;
  const trail: number[] = [];
  for (const frame of focus) {
    const node = level.find((each) => each[0] === frame);
    if (!node) break;
    trail.push(frame);
    const box: Box = {
      node,
      depth: trail.length - 1,
      left: 0,
      right: width,
      trail: [...trail],
      parent,
    };
    boxes.push(box);
    parent = box;
    level = node[2] ?? [];
  }
  const whole = parent ? parent.node[1] : level.reduce((sum, node) => sum + node[1], 0);
  let at = 0;
  for (const node of level) {
    const share = whole > 0 ? node[1] / whole : 0;
    put(node, at, at + share * width, [...trail, node[0]], parent);
    at += share * width;
  }
  return boxes;
}

// Time in frames of that name, counted once where such frames call each other.
function foundIn(stacks: Stacks, search: string): number | null {
  if (!search) return null;
  let found = 0;
  const walk = (nodes: readonly StackNode[], depth: number) => {
    for (const node of nodes) {
      const name = stacks.frames[node[0]] ?? "";
      if (name.toLowerCase().includes(search)) found += node[1];
      else if (depth < MOST_DEPTH) walk(node[2] ?? [], depth + 1);
    }
  };
  walk(stacks.roots, 0);
  const whole = stacks.roots.reduce((sum, node) => sum + node[1], 0);
  return whole > 0 ? found / whole : 0;
}

function neighbour(boxes: readonly Box[], box: Box, key: string): Box | undefined {
  const index = boxes.indexOf(box);
  switch (key) {
    case "ArrowUp":
      return box.parent ?? undefined;
    case "ArrowDown":
      return boxes.find((each) => each.parent === box);
    case "ArrowRight":
      return boxes.slice(index + 1).find((each) => each.depth === box.depth);
    case "ArrowLeft":
      return boxes
        .slice(0, index)
        .reverse()
        .find((each) => each.depth === box.depth);
    case "Home":
      return boxes[0];
    default:
      return undefined;
  }
}

export function icicle(width: number, stacks: Stacks, options: IcicleOptions): Icicle {
  const boxes = layOut(stacks, options.focus, width);
  const first = boxes.find((box) => box.trail.length === Math.max(1, options.focus.length));
  const total = stacks.roots.reduce((sum, node) => sum + node[1], 0);
  const depth = Math.max(0, ...boxes.map((box) => box.depth));
  const height = (depth + 1) * ROW + 1;
  const svg = s("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    class: "icicle",
    role: "group",
    "aria-label": "Stacks. Width is time. Arrow keys move from frame to frame, Enter widens one.",
  });
  const nodes = new Map<Box, SVGGElement>();
  for (const box of boxes) {
    const name = frameName(stacks, box.node, box.depth);
    const share = total > 0 ? box.node[1] / total : 0;
    const look = options.look?.(box.node, name);
    const words =
      look?.words ?? `${name} · ${numbers.seconds(box.node[1])} · ${numbers.percent(share)} of all`;
    const hit = options.search !== "" && name.toLowerCase().includes(options.search);
    const limit = box.depth <= 1 && options.limits.has(name);
    const group = s("g", {
      role: "button",
      tabindex: box === first ? 0 : -1,
      "aria-label": words,
      click: () => options.onFocus(box.trail),
    });
    group.append(
      s("rect", {
        x: box.left,
        y: box.depth * ROW,
        width: Math.max(0.5, box.right - box.left),
        height: ROW,
        class: hit
          ? "frame-found"
          : (look?.tone ?? (limit ? "frame-limit" : tone(name, box.depth))),
      }),
    );
    const full = look?.change ? `${shortName(name)} ${look.change}` : shortName(name);
    const text = cut(full, box.right - box.left - 8);
    if (text) group.append(s("text", { x: box.left + 5, y: box.depth * ROW + 14 }, text));
    nodes.set(box, group);
    svg.append(withTip(group, words));
  }
  svg.addEventListener("keydown", (event) => {
    const box = [...nodes].find(([, node]) => node === event.target)?.[0];
    if (!box) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      options.onFocus(box.trail);
      return;
    }
    const next = neighbour(boxes, box, event.key);
    if (!next) return;
    event.preventDefault();
    nodes.get(box)?.setAttribute("tabindex", "-1");
    nodes.get(next)?.setAttribute("tabindex", "0");
    nodes.get(next)?.focus();
  });
  return { svg, found: foundIn(stacks, options.search) };
}
