// Which code takes more or less time than in another run: one icicle of both, red where this run takes
// more, blue where it takes less, the change in words in each frame.
import { current, link, replaceQuery } from "../address";
import { get, getOr } from "../api";
import { icicle } from "../charts/icicle";
import type { FrameLook, Trail } from "../charts/icicle";
import { legend } from "../charts/states";
import type { Child } from "../element";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import type { DiffNode, Runs, Stacks, StacksDiff, StackNode } from "../types";
import { card, failure, plainCard } from "./card";
import { KINDS } from "./stacks";
import type { Cell } from "./table";

const ALIKE = 0.05; // of the longer time
const FEW = 0.002; // of all time: a change so small is none

interface Times {
  now: number;
  before: number;
}

// The tree as an icicle draws it: a frame is as wide as the longer of its times, or as what it calls.
function drawn(diff: StacksDiff): { stacks: Stacks; times: Map<StackNode, Times> } {
  const times = new Map<StackNode, Times>();
  const convert = ([frame, now, before, below]: DiffNode): StackNode => {
    const children = (below ?? []).map(convert);
    const called = children.reduce((sum, child) => sum + child[1], 0);
    const node: StackNode = [frame, Math.max(now, before, called), children];
    times.set(node, { now, before });
    return node;
  };
  const roots = diff.roots.map(convert);
  const total = roots.reduce((sum, node) => sum + node[1], 0);
  const { kind, kinds, frames } = diff;
  return { stacks: { kind, kinds, total_seconds: total, frames, roots }, times };
}

function lookOf(diff: StacksDiff, times: Map<StackNode, Times>, total: number) {
  const words = (value: number) =>
    diff.of === "all" ? numbers.percent(value) : numbers.seconds(value);
  const per = diff.of === "all" ? "of all" : `for ${diff.of}`;
  return (node: StackNode, name: string): FrameLook => {
    const { now, before } = times.get(node) ?? { now: 0, before: 0 };
    const longer = Math.max(now, before);
    const share = longer > 0 ? (now - before) / longer : 0;
    const alike = Math.abs(share) < ALIKE || Math.abs(now - before) < FEW * total;
    const level = Math.abs(share) < 0.25 ? 1 : Math.abs(share) < 0.6 ? 2 : 3;
    const change =
      before === 0 ? "only here" : now === 0 ? "only there" : numbers.change(now / before - 1);
    return {
      tone: alike ? "frame-system" : `frame-${share > 0 ? "more" : "less"}-${level}`,
      words: `${name} · ${words(now)} ${per}, ${words(before)} in ${diff.with.name} · ${alike ? "about the same" : change}`,
      change: alike ? "" : change,
    };
  };
}

function folded(diff: StacksDiff): Cell[][] {
  const rows: Cell[][] = [];
  const walk = (node: DiffNode, trail: string[]) => {
    if (rows.length >= 20000) return;
    const own = [...trail, diff.frames[node[0]] ?? ""];
    rows.push([own.join(";"), node[1], node[2], node[1] - node[2]]);
    for (const child of node[3] ?? []) walk(child, own);
  };
  for (const root of diff.roots) walk(root, []);
  return rows;
}

function chart(diff: StacksDiff): Child {
  const { stacks, times } = drawn(diff);
  const look = lookOf(diff, times, stacks.total_seconds ?? 0);
  let focus: Trail = [];
  const drawing = new Fitted((width) => {
    const onFocus = (trail: Trail) => {
      const same = trail.length === focus.length && trail.every((frame, i) => frame === focus[i]);
      focus = same ? focus.slice(0, -1) : trail;
      const hadFocus = drawing.element.contains(document.activeElement);
      drawing.redraw();
      if (hadFocus) drawing.element.querySelector<SVGGElement>('g[tabindex="0"]')?.focus();
    };
    return icicle(width, stacks, { focus, search: "", limits: new Set(), look, onFocus }).svg;
  });
  return drawing.element;
}

const LEGEND = [
  { class: "frame-more-2", text: "takes more time here" },
  { class: "frame-less-2", text: "takes less time here" },
  { class: "frame-system", text: "about the same" },
];

// The card of a comparison with the run that the address names; a choice of runs where it names none.
export function stacksDiff(id: number, first: string, signal: AbortSignal): HTMLElement {
  const box = h("div", { class: "page" });
  const question = "Which code takes other time than in another run?";
  let other = current().query.get("with") ?? "";
  let kind = first;
  let runs: Runs["runs"] = [];

  const choice = () => {
    const select = h(
      "select",
      { "aria-label": "Compare with run", "data-focus": "with" },
      h("option", { value: "" }, "Compare with ..."),
      runs
        .filter((run) => run.id !== id)
        .map((run) =>
          h(
            "option",
            { value: run.id, selected: String(run.id) === other },
            `${run.name || "run"} (${run.id})`,
          ),
        ),
      other !== "" && !runs.some((run) => String(run.id) === other)
        ? h("option", { value: other, selected: true }, `run ${other}`)
        : null,
    );
    select.addEventListener("change", () => {
      other = select.value;
      replaceQuery({ with: other || null });
      void show();
    });
    return select;
  };
  const kinds = (diff: StacksDiff) =>
    h(
      "div",
      { class: "seg", role: "group", "aria-label": "Kind of stacks compared" },
      KINDS.map(({ key, text }) =>
        h(
          "button",
          {
            type: "button",
            "data-focus": `diff ${key}`,
            "aria-pressed": String(key === diff.kind),
            click: () => {
              kind = key;
              void show();
            },
          },
          text,
        ),
      ),
    );

  async function show(): Promise<void> {
    const key = box.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-focus")
      : null;
    box.replaceChildren(await made());
    if (key) box.querySelector<HTMLElement>(`[data-focus="${CSS.escape(key)}"]`)?.focus();
  }

  async function made(): Promise<HTMLElement> {
    if (other === "") {
      const none = plainCard(question, "Choose a run to compare the stacks with.");
      none.querySelector("header")?.append(h("div", { class: "controls" }, choice()));
      return none;
    }
    let diff: StacksDiff;
    try {
      const asked = `with=${encodeURIComponent(other)}&kind=${kind}`;
      diff = await get<StacksDiff>(`/api/runs/${id}/stacks_diff?${asked}`, signal);
    } catch (error) {
      const failed = plainCard(question, "The stacks could not be compared.", failure(error));
      failed.querySelector("header")?.append(h("div", { class: "controls" }, choice()));
      return failed;
    }
    const { answer, empty, read, sql } = diff.card;
    const format = diff.of === "all" ? numbers.percent : numbers.seconds;
    return card({
      key: "stacks-diff",
      text: { question: diff.card.question, answer: answer ?? empty, read, sql },
      chart: empty ? null : chart(diff),
      legend: empty
        ? null
        : h(
            "div",
            { class: "legends" },
            legend(LEGEND),
            h(
              "p",
              { class: "note" },
              h("a", { href: link("operators", diff.with.id) }, diff.with.name),
              " is the run that it is compared with.",
            ),
          ),
      controls: [choice(), kinds(diff)],
      table: empty
        ? undefined
        : () => ({
            columns: [
              { title: "stack, from the root" },
              { title: "here", format },
              { title: `in ${diff.with.name}`, format },
              {
                title: "change",
                format: (value) => (value < 0 ? "−" : "+") + format(Math.abs(value)),
              },
            ],
            rows: folded(diff),
          }),
    });
  }

  void getOr<Runs>("/api/runs?limit=100", { runs: [], next: null }, signal).then((answer) => {
    runs = answer.runs;
    const old = box.querySelector('select[data-focus="with"]');
    if (old && old !== document.activeElement) old.replaceWith(choice());
  });
  void show();
  return box;
}
