// One operator: what it does to the rate, what its time is, and in what it is blocked.
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import type { OffCpu, TimeSplit } from "../types";
import type { OperatorRow } from "./operator_table";
import { workOf } from "./operator_table";

const SPLIT: readonly { key: keyof TimeSplit; text: string; tone: string }[] = [
  { key: "on_cpu_ratio", text: "on a core", tone: "fill-c" },
  { key: "storage_ratio", text: "storage", tone: "fill-b" },
  { key: "network_ratio", text: "network", tone: "fill-b" },
  { key: "lock_ratio", text: "lock", tone: "fill-b" },
  { key: "sleep_ratio", text: "sleep", tone: "fill-b" },
  { key: "other_ratio", text: "other blocking", tone: "fill-b" },
  { key: "runnable_ratio", text: "wants a core", tone: "fill-q" },
];
const MOST_CAUSES = 5;

function facts(row: OperatorRow): HTMLElement {
  const { operator } = row;
  const list: [string, string][] = [
    ["Busy", numbers.percent(operator.busy_ratio)],
    ["Alone allows", numbers.rate(operator.accounted_batches_per_second, "batches")],
    ["Calls a batch", numbers.count(operator.visit_ratio)],
    ["Bytes in", numbers.byteRate(operator.bytes_in_per_second)],
    ["Bytes out", numbers.byteRate(operator.bytes_out_per_second)],
    ["Rows", numbers.rate(operator.rows_per_second, "rows")],
  ];
  return h(
    "dl",
    null,
    list.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

function bar(name: string, share: number, tone: string, value: string): HTMLElement {
  const width = `${Math.min(100, share * 100).toFixed(2)}%`;
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, name),
    h(
      "td",
      { class: "grow" },
      h("i", { class: `bar thin ${tone}`, style: { width }, "aria-hidden": "true" }),
    ),
    h("td", { class: "num" }, value),
  );
}

function splitBars(row: OperatorRow): Child {
  const { split, operator } = row;
  const work = split ? workOf(split) : 0;
  const shares = SPLIT.map((each) => {
    const value = split?.[each.key];
    return { ...each, value: typeof value === "number" && work > 0 ? value / work : 0 };
  });
  const known = shares.filter((each) => each.value > 0.002).sort((a, b) => b.value - a.value);
  const rest = 1 - known.reduce((sum, each) => sum + each.value, 0);
  if (known.length === 0) {
    const why = operator["on_cpu_ratio_unavailable"];
    return h(
      "p",
      { class: "note" },
      typeof why === "string"
        ? `Its time was not split: ${why}.`
        : "Its time was not split further.",
    );
  }
  const SOURCES: Record<string, string> = {
    ebpf: "Split by the kernel at every switch (eBPF).",
    thread_clock: "Split by the thread's CPU clock; the rest is not separated.",
  };
  const source = split ? (SOURCES[split.source ?? ""] ?? "") : "";
  return [
    h("h3", { class: "sub" }, "Of the time it is busy"),
    h(
      "table",
      { class: "bars" },
      h(
        "tbody",
        null,
        known.map((each) => bar(each.text, each.value, each.tone, numbers.percent(each.value))),
        rest > 0.02 ? bar("not separated", rest, "fill-busy", numbers.percent(rest)) : null,
      ),
    ),
    source ? h("p", { class: "note" }, source) : null,
  ];
}

function causes(row: OperatorRow, offCpu: OffCpu | null): Child {
  const own = (offCpu?.rows ?? [])
    .filter((each) => each.operator === row.operator.operator && each.stage === row.operator.stage)
    .filter((each) => (each.seconds ?? 0) > 0)
    .sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))
    .slice(0, MOST_CAUSES);
  if (own.length === 0) return null;
  const most = own[0].seconds || 1;
  return [
    h("h3", { class: "sub" }, "Blocked in"),
    h(
      "table",
      { class: "bars" },
      h(
        "tbody",
        null,
        own.map((each) =>
          bar(
            each.cause || each.class,
            (each.seconds ?? 0) / most,
            "fill-b",
            numbers.seconds(each.seconds),
          ),
        ),
      ),
    ),
  ];
}

export function operatorDrawer(
  row: OperatorRow,
  offCpu: OffCpu | null,
  showStacks: () => void,
): HTMLElement {
  const { operator } = row;
  const threads = operator.threads_count
    ? ` · ${numbers.plural(operator.threads_count, "thread")}`
    : "";
  return h(
    "aside",
    { class: "drawer", "aria-label": `Operator ${operator.operator}` },
    h("h3", { class: row.limit && "accent" }, operator.operator),
    h(
      "p",
      { class: "dim" },
      `${operator.kind ? `${operator.kind} · ` : ""}stage ${operator.stage}${threads}`,
    ),
    facts(row),
    splitBars(row),
    causes(row, offCpu),
    h(
      "button",
      { class: "btn", type: "button", click: showStacks, "data-focus": "show stacks" },
      "Only its stacks",
    ),
  );
}
