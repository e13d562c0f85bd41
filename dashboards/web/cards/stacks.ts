// In which code: stacks on a core, blocked inside an operator, or waiting for others.
import { current, replaceQuery } from "../address";
import { get } from "../api";
import { icicle } from "../charts/icicle";
import type { Trail } from "../charts/icicle";
import { Fitted, h, oncePerFrame } from "../element";
import * as numbers from "../numbers";
import type { CardText, Stacks, StackNode } from "../types";
import { card, failure } from "./card";
import { command } from "./command";
import type { Cell } from "./table";

export const KINDS: readonly { key: string; text: string; answer: string }[] = [
  { key: "cpu", text: "On a core", answer: "on a core" },
  { key: "off_cpu", text: "Blocked inside", answer: "blocked inside an operator" },
  {
    key: "waiting",
    text: "Waiting for others",
    answer: "waiting for a queue or outside operators",
  },
  { key: "python", text: "Python", answer: "in Python functions, busy or waiting" },
];

const MOST_ROWS = 20000;

export interface StacksCard {
  element: HTMLElement;
  // Shows the stacks of one operator only.
  focus(stage: string, operator: string): void;
}

// Each stack with the time that is its own: of its last frame, without what that called.
function folded(stacks: Stacks): Cell[][] {
  const rows: Cell[][] = [];
  const walk = (node: StackNode, trail: string[]) => {
    if (rows.length >= MOST_ROWS) return;
    const own = [...trail, stacks.frames[node[0]] ?? ""];
    const children = node[2] ?? [];
    const rest = node[1] - children.reduce((sum, child) => sum + child[1], 0);
    if (rest > node[1] * 1e-6) rows.push([own.join(";"), Number(rest.toPrecision(6))]);
    for (const child of children) walk(child, own);
  };
  for (const root of stacks.roots) walk(root, []);
  return rows;
}

function pathOf(stacks: Stacks, names: readonly string[]): number[] {
  const trail: number[] = [];
  let level: readonly StackNode[] = stacks.roots;
  for (const name of names) {
    const node = level.find((each) => stacks.frames[each[0]] === name);
    if (!node) break;
    trail.push(node[0]);
    level = node[2] ?? [];
  }
  return trail;
}

const NONE: Stacks = { kind: "", kinds: [], total_seconds: 0, frames: [], roots: [] };

export function stacksCard(
  id: number,
  first: string,
  limits: ReadonlySet<string>,
  text: CardText,
  signal: AbortSignal,
): StacksCard {
  let stacks = NONE;
  let kind = first;
  let focus: Trail = [];
  let search = "";
  const note = h("p", { class: "note", role: "status" });
  const crumbs = h("nav", {
    class: "crumbs",
    "aria-label": "Frames that are widened",
    hidden: true,
  });
  const drawing = new Fitted((width) => {
    const drawn = icicle(width, stacks, { focus, search, limits, onFocus: choose });
    const found =
      drawn.found === null ? "" : `"${search}" is in ${numbers.percent(drawn.found)} of the time. `;
    note.textContent = `${found}${numbers.seconds(stacks.total_seconds)} of all threads. Rows: stage, operator, then its stack. Choose a frame to widen it.`;
    return drawn.svg;
  });
  const box = h("div", null, drawing.element);

  function choose(trail: Trail): void {
    const same = trail.length === focus.length && trail.every((frame, i) => frame === focus[i]);
    set(same ? focus.slice(0, -1) : trail);
  }

  function set(trail: Trail): void {
    focus = trail;
    const step = (title: string, length: number) =>
      h(
        "button",
        { type: "button", class: "more", click: () => set(focus.slice(0, length)) },
        title,
      );
    crumbs.replaceChildren(
      step("All", 0),
      ...focus.slice(0, -1).map((frame, i) => step(stacks.frames[frame] ?? "", i + 1)),
      ...focus.slice(-1).map((frame) => h("b", null, stacks.frames[frame] ?? "")),
    );
    crumbs.hidden = focus.length === 0;
    const hadFocus = drawing.element.contains(document.activeElement);
    drawing.redraw();
    if (hadFocus) drawing.element.querySelector<SVGGElement>('g[tabindex="0"]')?.focus();
  }

  const buttons = KINDS.map(({ key, text: title }) =>
    h(
      "button",
      { type: "button", "data-focus": `kind ${key}`, click: () => void load(key) },
      title,
    ),
  );
  const mark = () =>
    buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(KINDS[i].key === kind)),
    );

  function empty(): HTMLElement {
    const words = KINDS.find((each) => each.key === kind)?.answer ?? kind;
    return h(
      "div",
      { class: "failure" },
      h("p", null, `No stack was sampled ${words} in this run.`),
      command("headrace doctor", "cmd flat"),
    );
  }

  async function load(asked: string, asIs = false): Promise<void> {
    kind = asked;
    mark();
    if (!asIs) replaceQuery({ kind });
    try {
      stacks = await get<Stacks>(`/api/runs/${id}/stacks?kind=${kind}`, signal);
    } catch (error) {
      if (signal.aborted) return;
      stacks = NONE;
      box.replaceChildren(failure(error));
      note.textContent = "";
      return;
    }
    // A file may hold one kind only.
    if (stacks.kind && stacks.kind !== kind) {
      kind = stacks.kind;
      mark();
    }
    if (stacks.roots.length === 0) {
      box.replaceChildren(empty());
      note.textContent = "";
      return;
    }
    box.replaceChildren(drawing.element);
    const operator = pending;
    pending = null;
    set(operator ? pathOf(stacks, operator) : []);
  }

  let pending: readonly string[] | null = null;
  const find = h("input", {
    type: "search",
    placeholder: "Find a function",
    "aria-label": "Find a function",
    "data-focus": "find",
  });
  find.addEventListener(
    "input",
    oncePerFrame(() => {
      search = find.value.trim().toLowerCase();
      if (stacks.roots.length > 0) drawing.redraw();
    }),
  );
  const controls = [
    find,
    h("div", { class: "seg", role: "group", "aria-label": "Kind of stacks" }, buttons),
  ];
  const element = card({
    key: "stacks",
    text,
    chart: [crumbs, box],
    legend: note,
    controls,
    table: () => ({
      columns: [
        { title: "stack, from the root" },
        { title: "seconds of its own", format: numbers.seconds },
      ],
      rows: folded(stacks),
    }),
  });
  void load(kind, true);
  return {
    element,
    focus(stage, operator) {
      const trail = pathOf(stacks, [stage, operator]);
      if (stacks.roots.length === 0) pending = [stage, operator];
      else set(trail);
      element.scrollIntoView({ block: "nearest" });
      if (trail.length < 2 && stacks.roots.length > 0) {
        note.textContent = `No such stack was sampled in ${operator}. Another kind may have some.`;
      }
    },
  };
}

// The kind that the address asks for, else the one that explains the limit.
export function firstKind(blocked: boolean): string {
  const asked = current().query.get("kind");
  return KINDS.find((each) => each.key === asked)?.key ?? (blocked ? "off_cpu" : "cpu");
}
