// Can these numbers be trusted: what measuring cost, lost and could not see.
import { linkTo } from "../address";
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import type { CardText, Report } from "../types";
import { card } from "./card";

function fact(question: string, value: string, ...more: Child[]): HTMLElement {
  return h("div", null, h("dt", null, question), h("dd", null, h("b", null, value), " ", more));
}

export function trustCard(report: Report, text: CardText): HTMLElement | null {
  const { cost } = report;
  const probes = report.probes ?? [];
  const working = probes.filter((probe) => probe.state === "active").length;
  const losses = (report.losses ?? []).filter((loss) => (loss.lost_count ?? 0) > 0);
  const level = report.measurements?.accounting_level ?? report.run.accounting_level ?? null;
  const facts = h(
    "dl",
    { class: "facts" },
    fact(
      "Cost of recording",
      numbers.percent(cost?.machine_ratio),
      cost?.machine_ratio === null || cost?.machine_ratio === undefined
        ? "not recorded"
        : "of the machine",
      cost?.collector_rss_bytes ? `, ${numbers.bytes(cost.collector_rss_bytes)}` : null,
    ),
    fact("Events lost", numbers.count(cost?.events_lost_count), losses[0]?.affects ?? null),
    fact(
      "How time was split",
      level === null ? numbers.NONE : `level ${level}`,
      report.measurements?.accounting_note ?? "",
    ),
    fact(
      "Probes",
      `${working} of ${probes.length}`,
      h(
        "a",
        linkTo("environment", report.run.id),
        working < probes.length ? "work here; why the others do not" : "work here",
      ),
    ),
  );
  return card({
    key: "trust",
    text,
    chart: facts,
    svg: false,
    table: () => ({
      columns: [{ title: "what" }, { title: "lost", format: numbers.count }, { title: "affects" }],
      rows: (report.losses ?? []).map((loss) => [loss.what, loss.lost_count, loss.affects]),
    }),
  });
}
