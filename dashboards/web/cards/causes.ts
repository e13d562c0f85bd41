// Who the trainer waits for: the step as it is, and with one cause after the other taken away; below,
// how long steps took.
import { steps, stepsLeftOut } from "../charts/steps";
import type { Child } from "../element";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import type { CardText, Histograms, Report, StallCause } from "../types";
import { card } from "./card";

function causeRow(cause: StallCause, slowest: number): HTMLElement {
  const rate = cause.batches_per_second;
  const wait = Math.min(1, Math.max(0, cause.stall_ratio ?? 0));
  const width = rate ? Math.min(1, slowest / rate) : 0;
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, cause.case),
    h(
      "td",
      { class: "grow" },
      rate === null
        ? h("span", { class: "dim" }, "not measured")
        : h(
            "div",
            { class: "steprow thin", style: { width: `${width * 100}%` }, "aria-hidden": "true" },
            h("span", { class: "fill-compute", style: { flex: 1 - wait } }),
            h("span", { class: "fill-wait", style: { flex: wait } }),
          ),
    ),
    h("td", { class: "num" }, numbers.percent(cause.stall_ratio)),
    h("td", { class: "num" }, numbers.rateNumber(rate)),
  );
}

function causesTable(causes: readonly StallCause[]): Child {
  if (causes.length === 0) return null;
  const slowest = Math.min(...causes.map((cause) => cause.batches_per_second ?? Infinity));
  return h(
    "table",
    { class: "causes" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, "if"),
        h("th", { scope: "col" }, "a step"),
        h("th", { scope: "col", class: "num" }, "waits"),
        h("th", { scope: "col", class: "num" }, "batches/s"),
      ),
    ),
    h(
      "tbody",
      null,
      causes.map((cause) => causeRow(cause, slowest)),
    ),
  );
}

function stepsChart(report: Report, histograms: Histograms | null): Child {
  const buckets = histograms?.steps ?? [];
  const step = report.steps?.[0];
  if (buckets.length === 0) return null;
  const count = buckets.reduce((sum, bucket) => sum + bucket[1], 0);
  const p50 = step?.step_p50_seconds ?? null;
  const p99 = step?.step_p99_seconds ?? null;
  const label = `Times of ${numbers.plural(count, "step")}: half at most ${numbers.seconds(p50)}, 99 of 100 at most ${numbers.seconds(p99)}`;
  return [
    h("h3", { class: "sub" }, `How long ${numbers.plural(count, "step")} took`),
    new Fitted((width) => steps(width, buckets, p50, p99, label)).element,
    h("p", { class: "note" }, stepsLeftOut(buckets)),
  ];
}

export function causesCard(
  report: Report,
  histograms: Histograms | null,
  text: CardText,
): HTMLElement | null {
  const causes = report.stall_causes ?? [];
  const times = stepsChart(report, histograms);
  if (causes.length === 0 && !times) return null;
  return card({
    key: "causes",
    text,
    chart: [causesTable(causes), times],
    table: () => ({
      columns: [
        { title: "if" },
        { title: "batches/s", format: numbers.rateNumber },
        { title: "the trainer waits", format: numbers.percent },
        { title: "for" },
        { title: "of each step now", format: numbers.percent },
      ],
      rows: causes.map((each) => [
        each.case,
        each.batches_per_second,
        each.stall_ratio,
        each.cause,
        each.step_ratio,
      ]),
    }),
  });
}
