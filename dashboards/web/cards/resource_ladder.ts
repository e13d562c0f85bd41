// The resource ladder of a run.
import { ladder } from "../charts/ladder";
import type { LadderRow } from "../charts/ladder";
import { Fitted } from "../element";
import * as numbers from "../numbers";
import type { CardText, Report, Rung } from "../types";
import { card } from "./card";

// "stage fetch (1 thread)" as people say it beside a chart: "fetch ×1". Who takes the batches is the
// trainer to people.
export function rungName(resource: string): string {
  if (resource === "consumer") return "trainer";
  return resource.replace(/^stage /, "").replace(/ \((\d+) threads?\)$/, " ×$1");
}

// Memory is known, though it has no rate: how much of it is used.
const isRoom = (rung: Rung) => rung.kind === "memory" && rung.note !== "";

function rowOf(rung: Rung): LadderRow {
  return {
    name: rungName(rung.resource),
    short: rungName(rung.resource)
      .replace(/ ×\d+$/, "")
      .replace("memory bandwidth", "mem. bw.")
      .replace(" (room, no rate)", ""),
    rate: rung.attainable_batches_per_second,
    low: rung.attainable_batches_per_second_low,
    high: rung.attainable_batches_per_second_high,
    limit: rung.binding !== "",
    note: isRoom(rung) ? rung.note : (rung.attainable_batches_per_second_unavailable ?? ""),
    known: isRoom(rung),
  };
}

export function ladderCard(report: Report, text: CardText): HTMLElement | null {
  const rungs = report.resource_ladder ?? [];
  if (rungs.length === 0) return null;
  const rows = rungs.map(rowOf);
  const lines = {
    rate: report.verdict?.observed?.batches_per_second ?? null,
    rateName: "observed",
    wanted: report.pipeline?.trainer?.wants_batches_per_second ?? null,
  };
  const chart = new Fitted((width) => ladder(width, rows, lines, text.answer ?? ""));
  return card({
    key: "ladder",
    text,
    chart: chart.element,
    table: () => ({
      columns: [
        { title: "resource" },
        { title: "allows batches/s", format: numbers.rateNumber },
        { title: "low", format: numbers.rateNumber },
        { title: "high", format: numbers.rateNumber },
        { title: "used", format: numbers.percent },
        { title: "source, or why it is unknown" },
      ],
      rows: rungs.map((rung) => [
        rung.resource,
        rung.attainable_batches_per_second,
        rung.attainable_batches_per_second_low ?? null,
        rung.attainable_batches_per_second_high ?? null,
        rung.used_ratio,
        rung.attainable_batches_per_second_unavailable ?? rung.note,
      ]),
    }),
  });
}
