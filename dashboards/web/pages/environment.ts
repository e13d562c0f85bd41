// Where a run was made, what could be measured there, and what would change that.
import { get } from "../api";
import { card, emptyCard, plainCard } from "../cards/card";
import { tableElement } from "../cards/table";
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import type { CardText, Probe, Report } from "../types";
import type { Context, Shown } from "./context";
import { runTitle, showRun } from "./frame";

function machineFacts(report: Report): HTMLElement {
  const { run, resources } = report;
  const level = run.accounting_level;
  const list: [string, string | null | undefined][] = [
    ["Program", run.program],
    ["Process", run.pid ? String(run.pid) : null],
    ["Pipeline", run.pipeline],
    ["Started", numbers.moment(run.started_seconds)],
    ["Recorded", numbers.seconds(run.duration_seconds)],
    ["Processor", run.cpu_model],
    ["Kernel", run.kernel],
    [
      "Cores it may use",
      resources?.cores_budget
        ? `${numbers.count(resources.cores_budget)}, bound by ${resources.cores_bound_by || "the machine"}`
        : null,
    ],
    [
      "Measurement level",
      level === null || level === undefined
        ? null
        : `${level}: ${report.measurements?.accounting_note ?? ""}`,
    ],
    ["headrace", run.headrace_version],
  ];
  return h(
    "dl",
    { class: "pairs" },
    list
      .filter(([, value]) => value)
      .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

const mark = (tone: string) => h("span", { class: `mark-${tone}`, "aria-hidden": "true" });

function workingProbe(probe: Probe): HTMLElement {
  return h("li", null, mark("good"), probe.probe);
}

function missingProbe(probe: Probe): HTMLElement {
  return h(
    "div",
    { class: "probe" },
    h("dt", null, mark("bad"), probe.probe, h("span", { class: "u" }, ` ${probe.state}`)),
    h(
      "dd",
      null,
      probe.reason ? h("p", null, probe.reason) : null,
      probe.fix ? h("p", null, h("b", null, "To change it: "), probe.fix) : null,
      probe.affects ? h("p", { class: "dim" }, `Missing without it: ${probe.affects}`) : null,
    ),
  );
}

function probesCard(probes: readonly Probe[], text: CardText): HTMLElement {
  const missing = probes.filter((probe) => probe.state !== "active");
  const working = probes.filter((probe) => probe.state === "active");
  return card({
    key: "environment",
    text,
    svg: false,
    chart: [
      missing.length > 0 ? h("dl", { class: "probes" }, missing.map(missingProbe)) : null,
      working.length > 0
        ? [
            h("h3", { class: "sub" }, `${numbers.plural(working.length, "probe")} worked`),
            h("ul", { class: "working" }, working.map(workingProbe)),
          ]
        : null,
    ],
    table: () => ({
      columns: [
        { title: "probe" },
        { title: "state" },
        { title: "reason" },
        { title: "what would change it" },
        { title: "missing without it" },
      ],
      rows: probes.map((probe) => [
        probe.probe,
        probe.state,
        probe.reason ?? "",
        probe.fix ?? "",
        probe.affects ?? "",
      ]),
    }),
  });
}

function costs(report: Report): Child {
  const rows = report.probe_cost ?? [];
  if (rows.length === 0) return null;
  return plainCard(
    "What did each probe cost the collector?",
    "Time spent reading",
    tableElement(
      {
        columns: [
          { title: "probe" },
          { title: "reading", format: numbers.seconds },
          { title: "readings", format: numbers.count },
        ],
        rows: rows.map((row) => [row.probe, row.read_seconds, row.reads_count]),
      },
      "What did each probe cost the collector?",
    ),
  );
}

function losses(report: Report): Child {
  const rows = (report.losses ?? []).filter((row) => (row.lost_count ?? 0) > 0);
  if (rows.length === 0) return null;
  return plainCard(
    "What was lost?",
    "Events that could not be kept",
    tableElement(
      {
        columns: [
          { title: "what" },
          { title: "lost", format: numbers.count },
          { title: "of", format: numbers.count },
          { title: "affects" },
        ],
        rows: rows.map((row) => [row.what, row.lost_count, row.total_count ?? null, row.affects]),
      },
      "What was lost?",
    ),
  );
}

export async function environment({ id, signal }: Context): Promise<Shown> {
  const report = await get<Report>(`/api/runs/${id}/report?brief=1`, signal);
  const probes = report.probes ?? [];
  const question = "What could be measured here?";
  const text = report.cards?.environment ?? {
    question,
    answer: `${numbers.count(probes.filter((probe) => probe.state === "active").length)} of ${numbers.plural(probes.length, "probe")} worked`,
  };
  return {
    title: `Environment of ${runTitle(report)}`,
    body: [
      h("h1", { class: "vh" }, `Environment of ${report.run.name || `run ${id}`}`),
      plainCard(
        "Where was it recorded?",
        report.run.hostname || "Unknown host",
        machineFacts(report),
      ),
      probes.length > 0
        ? probesCard(probes, text)
        : emptyCard(
            {
              question,
              empty: text.empty ?? "No probe has reported for this run.",
              command: text.command ?? "headrace doctor",
            },
            "environment",
          ),
      costs(report),
      losses(report),
    ],
    after: () => showRun(report),
  };
}
