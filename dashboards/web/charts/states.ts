// What the time of a thread is, in the order in which it is drawn, with its colour and its words.
// Blue of two depths is an operator's own time; ochre is not a demand, nor are the two greys.
import { h } from "../element";

export type StateKey = "c" | "b" | "q" | "wo" | "wi";

export interface State {
  key: StateKey;
  text: string;
}

export const STATES: readonly State[] = [
  { key: "c", text: "on a core" },
  { key: "b", text: "blocked inside (storage, lock, sleep)" },
  { key: "q", text: "wants a core" },
  { key: "wo", text: "waits for room downstream" },
  { key: "wi", text: "waits for input" },
];

export const colour = (key: StateKey | "busy" | "compute" | "water") => `var(--${key})`;

export interface Split {
  c: number | null;
  b: number | null;
  q: number | null;
  wo: number | null;
  busy: number | null;
}

const share = (value: number | null | undefined) => Math.min(1, Math.max(0, value ?? 0));

// The parts to draw, from the left: where the time at work was not split, it is one part.
export function parts(split: Split): { key: StateKey | "busy"; share: number }[] {
  const own: { key: StateKey | "busy"; share: number }[] =
    split.c === null || split.c === undefined
      ? [{ key: "busy", share: share(split.busy) }]
      : [
          { key: "c", share: share(split.c) },
          { key: "b", share: share(split.b) },
          { key: "q", share: share(split.q) },
        ];
  return [...own, { key: "wo", share: share(split.wo) }];
}

// A bar of a thread's time. What is left of it waits for input.
export function stateBar(split: Split, name: string) {
  const own = parts(split);
  const whole = Math.max(
    1,
    own.reduce((sum, part) => sum + part.share, 0),
  );
  return h(
    "span",
    { class: "statebar", "aria-hidden": "true", "data-name": name },
    own
      .filter((part) => part.share > 0)
      .map((part) =>
        h("i", {
          class: `fill-${part.key}`,
          style: { width: `${((part.share / whole) * 100).toFixed(2)}%` },
        }),
      ),
  );
}

export function legend(entries: readonly { class: string; text: string }[]) {
  return h(
    "ul",
    { class: "legend" },
    entries.map((entry) =>
      h("li", null, h("i", { class: entry.class, "aria-hidden": "true" }), entry.text),
    ),
  );
}

// `split`: whether the time at work was separated into its three parts; `trainer`: with its two.
export function stateLegend(split = true, trainer = false) {
  const own = split
    ? STATES.slice(0, 3).map(({ key, text }) => ({ class: `fill-${key}`, text }))
    : [{ class: "fill-busy", text: "at work (not separated further)" }];
  const waits = STATES.slice(3).map(({ key, text }) => ({ class: `fill-${key}`, text }));
  const step = [
    { class: "fill-compute", text: "trainer computes" },
    { class: "fill-wait", text: "trainer waits" },
  ];
  return legend([...own, ...waits, ...(trainer ? step : [])]);
}
