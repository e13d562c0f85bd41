// A run that was seen from outside: no operators, but groups of threads and what they waited in.
import { legend } from "../charts/states";
import { h } from "../element";
import * as numbers from "../numbers";
import type { Report, ThreadGroup } from "../types";
import { card } from "./card";

const KINDS: readonly { key: string; class: string; text: string }[] = [
  { key: "on_cpu_ratio", class: "fill-c", text: "on a core" },
  { key: "runnable_ratio", class: "fill-q", text: "wants a core" },
  { key: "storage_ratio", class: "fill-b", text: "storage" },
  { key: "network_ratio", class: "fill-water", text: "network" },
  { key: "lock_ratio", class: "fill-wo", text: "lock" },
];

const share = (group: ThreadGroup, key: string) => {
  const value = group[key];
  return typeof value === "number" ? value : null;
};

function row(group: ThreadGroup): HTMLElement {
  return h(
    "tr",
    null,
    h(
      "th",
      { scope: "row" },
      group.group,
      group.role ? h("span", { class: "u" }, ` ${group.role}`) : null,
    ),
    h(
      "td",
      { class: "grow" },
      h(
        "span",
        { class: "statebar", "aria-hidden": "true" },
        KINDS.map((kind) => {
          const part = share(group, kind.key) ?? 0;
          return part > 0
            ? h("i", { class: kind.class, style: { width: `${Math.min(1, part) * 100}%` } })
            : null;
        }),
      ),
    ),
    h("td", { class: "num" }, numbers.percent(share(group, "on_cpu_ratio"))),
  );
}

export function threadsCard(report: Report): HTMLElement | null {
  const groups = report.threads ?? [];
  if (groups.length === 0) return null;
  return card({
    key: "threads",
    text: {
      question: "What did the threads of each process do?",
      answer: `${numbers.plural(groups.length, "group")} of threads, seen from outside`,
    },
    chart: h("table", { class: "bars" }, h("tbody", null, groups.map(row))),
    legend: legend([
      ...KINDS.map(({ class: tone, text }) => ({ class: tone, text })),
      { class: "fill-wi", text: "other waits" },
    ]),
    table: () => ({
      columns: [
        { title: "threads" },
        { title: "role" },
        ...KINDS.map((kind) => ({ title: kind.text, format: numbers.percent })),
      ],
      rows: groups.map((group) => [
        group.group,
        group.role,
        ...KINDS.map((kind) => share(group, kind.key)),
      ]),
    }),
  });
}
