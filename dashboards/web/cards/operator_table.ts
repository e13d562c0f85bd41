// Operators by stage, in the order of the pipeline or of a column. A thousand of them are a table of
// which only what is in view exists.
import { spark } from "../charts/spark";
import { parts, stateBar } from "../charts/states";
import type { Split } from "../charts/states";
import { fitted, h } from "../element";
import * as numbers from "../numbers";
import { timeline } from "../time";
import type {
  Figure,
  Operator,
  OperatorCourse,
  Report,
  StageInPipeline,
  TimeSplit,
} from "../types";
import type { Table } from "./table";
import { WindowedRows } from "./table";

export interface OperatorRow {
  operator: Operator;
  split: TimeSplit | undefined;
  cpu: number | null; // share of the CPU time of all operators
  limit: boolean;
}

type Line = { stage: StageInPipeline; limit: boolean; cpu: number | null } | OperatorRow;

interface Sort {
  key: "order" | "busy" | "cpu" | "alone" | "bytes";
}

const ROW = 34;
const COLUMNS = 7;

// CPU time of an operator in cores: its share of the time of its stage's threads, of which there may
// be several.
function coresOf(operator: Operator, threads: ReadonlyMap<string, number>): number | null {
  if (operator.on_cpu_ratio === null || operator.on_cpu_ratio === undefined) return null;
  return operator.on_cpu_ratio * (operator.threads_count ?? threads.get(operator.stage) ?? 1);
}

export function operatorRows(report: Report): OperatorRow[] {
  const threads = new Map(
    (report.pipeline?.stages ?? []).map((stage) => [stage.name, stage.threads ?? 1]),
  );
  const splits = new Map(
    (report.time_split ?? []).map((each) => [`${each.stage} ${each.operator}`, each]),
  );
  const all = report.operators ?? [];
  // The trainer's own work is CPU time too, but not an operator's that anybody could tune here.
  const operators = all.filter((each) => each.kind !== "consumer");
  const total = all.reduce((sum, each) => sum + (coresOf(each, threads) ?? 0), 0);
  const limit = report.verdict?.limit;
  return operators.map((operator) => {
    const cores = coresOf(operator, threads);
    return {
      operator,
      split: splits.get(`${operator.stage} ${operator.operator}`),
      cpu: cores === null || total === 0 ? null : cores / total,
      limit:
        limit?.operator === operator.operator &&
        (limit.kind !== "stage" || limit.name === operator.stage),
    };
  });
}

// The split's shares are of an operator's time with its waits; this is the part of it at work. Not all
// of that may be separated.
export function workOf(split: TimeSplit): number {
  return Math.max(0, 1 - (split.wait_ratio ?? 0));
}

const SEPARATED = 0.1; // of its busy time: where more of it is unknown, the bar has one colour

// Shares of the time of the stage's threads.
export function splitOf(row: OperatorRow): Split {
  const { operator, split } = row;
  const busy = operator.busy_ratio;
  const c = operator.on_cpu_ratio;
  const unknown = { c: null, b: null, q: null, wo: null, busy };
  if (busy === null || c === null || c === undefined) return unknown;
  const runnable = split?.runnable_ratio;
  if (typeof runnable !== "number") {
    return busy - c > SEPARATED * busy
      ? unknown
      : { c, b: Math.max(0, busy - c), q: 0, wo: null, busy };
  }
  const work = split ? workOf(split) : 0;
  const q = work > 0 ? Math.min(Math.max(0, busy - c), (busy * runnable) / work) : 0;
  return { c, b: Math.max(0, busy - c - q), q, wo: null, busy };
}

function sorted(rows: readonly OperatorRow[], key: Sort["key"]): OperatorRow[] {
  const value: Record<Sort["key"], (row: OperatorRow) => number> = {
    order: () => 0,
    busy: (row) => row.operator.busy_ratio ?? -1,
    cpu: (row) => row.cpu ?? -1,
    // The tightest first: it is the one that limits.
    alone: (row) => -(row.operator.accounted_batches_per_second ?? Infinity),
    bytes: (row) => row.operator.bytes_out_per_second ?? -1,
  };
  return key === "order" ? [...rows] : [...rows].sort((a, b) => value[key](b) - value[key](a));
}

// With the stages between them, where the order is that of the pipeline.
function linesOf(report: Report, rows: readonly OperatorRow[], key: Sort["key"]): Line[] {
  const ordered = sorted(rows, key);
  if (key !== "order") return ordered;
  const stages = report.pipeline?.stages ?? [];
  const lines: Line[] = [];
  const placed = new Set<OperatorRow>();
  for (const stage of stages) {
    const own = ordered.filter((row) => row.operator.stage === stage.name);
    if (own.length === 0) continue;
    const cpu = own.some((row) => row.cpu !== null)
      ? own.reduce((sum, row) => sum + (row.cpu ?? 0), 0)
      : null;
    lines.push({ stage, limit: stage.limit, cpu }, ...own);
    for (const row of own) placed.add(row);
  }
  return [...lines, ...ordered.filter((row) => !placed.has(row))];
}

// Of all CPU time. Without tenths where they would say more than is known: threads of stages do not
// live equally long.
const cpuShare = (share: number | null) =>
  share !== null && share >= 0.0995 ? numbers.wholePercent(share) : numbers.percent(share);

function stageRow(line: {
  stage: StageInPipeline;
  limit: boolean;
  cpu: number | null;
}): HTMLTableRowElement {
  const { stage } = line;
  return h(
    "tr",
    { class: "head" },
    h(
      "th",
      { scope: "rowgroup", class: line.limit && "accent" },
      stage.name,
      h("span", { class: "u" }, stage.threads === null ? "" : ` ×${numbers.count(stage.threads)}`),
    ),
    h("td"),
    h("td", { class: "num" }, numbers.percent(stage.busy)),
    h("td", { class: "num hide" }, cpuShare(line.cpu)),
    h("td", { class: "num hide" }, numbers.rateNumber(stage.bound_batches_per_second)),
    h("td", { class: "hide" }),
    h("td", { class: "hide" }),
  );
}

export interface OperatorTable {
  element: HTMLElement;
  choose(name: string): void;
  show(search: string): void;
  redraw(): void; // the range of time has changed
  // Their course is there: of a long run it comes after all else.
  showCourse(course: OperatorCourse): void;
  csv(): Table;
}

export interface OperatorTableOptions {
  report: Report;
  rows: readonly OperatorRow[];
  chosen: string;
  onChoose(row: OperatorRow): void;
}

export function operatorTable(options: OperatorTableOptions): OperatorTable {
  const { report, rows } = options;
  let course: OperatorCourse | null = null;
  let courses = new Map<string, Figure[]>();
  let chosen = options.chosen;
  let key: Sort["key"] = "order";
  let search = "";
  let lines: Line[] = [];

  const operatorRow = (row: OperatorRow): HTMLTableRowElement => {
    const { operator } = row;
    const busy = courses.get(`${operator.stage} ${operator.operator}`);
    const on = operator.operator === chosen;
    const choose = () => options.onChoose(row);
    const drawn = busy
      ? fitted(
          (width) =>
            spark(
              width,
              { t: course?.t ?? [], d: course?.d ?? [], v: busy },
              { from: timeline.from, to: timeline.to, top: 1, height: 20 },
            ),
          { class: "mini" },
        )
      : null;
    return h(
      "tr",
      { class: on ? "op on" : "op", click: choose },
      h(
        "th",
        { scope: "row" },
        h(
          "button",
          {
            type: "button",
            class: row.limit ? "pick accent" : "pick",
            "aria-pressed": String(on),
            "data-focus": `operator ${operator.operator}`,
          },
          operator.operator,
        ),
      ),
      h("td", { class: "statecell" }, stateBar(splitOf(row), operator.operator)),
      h("td", { class: "num" }, numbers.percent(operator.busy_ratio)),
      h("td", { class: "num hide" }, cpuShare(row.cpu)),
      h("td", { class: "num hide" }, numbers.rateNumber(operator.accounted_batches_per_second)),
      h("td", { class: "num hide" }, numbers.byteRate(operator.bytes_out_per_second)),
      h("td", { class: "hide" }, drawn),
    );
  };
  const windowed = new WindowedRows<Line>(
    [],
    (line) => ("stage" in line ? stageRow(line) : operatorRow(line)),
    ROW,
    COLUMNS,
  );

  const heads = new Map<Sort["key"], HTMLTableCellElement>();
  const arrange = () => {
    const found = search
      ? rows.filter((row) =>
          `${row.operator.stage} ${row.operator.operator}`.toLowerCase().includes(search),
        )
      : rows;
    lines = linesOf(report, found, key);
    windowed.replace(lines);
    for (const [each, head] of heads) {
      if (each === key)
        head.setAttribute("aria-sort", each === "alone" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  };
  const head = (title: string, own: Sort["key"] | null, tone: string) => {
    if (own === null) return h("th", { scope: "col", class: tone }, title);
    const sort = () => {
      key = key === own ? "order" : own;
      arrange();
    };
    const cell = h(
      "th",
      { scope: "col", class: tone },
      h("button", { type: "button", click: sort, "data-focus": `sort ${own}` }, title),
    );
    if (own !== "order") heads.set(own, cell);
    return cell;
  };
  const table = h(
    "table",
    { class: "ops" },
    h("caption", { class: "vh" }, "Operators by stage"),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        head("operator", "order", ""),
        head("time of its threads", null, ""),
        head("busy", "busy", "num"),
        head("of all CPU", "cpu", "num hide"),
        head("alone allows, batches/s", "alone", "num hide"),
        head("bytes out", "bytes", "num hide"),
        head("busy over time", null, "hide"),
      ),
    ),
    windowed.body,
  );
  const element = windowed.scroller(table, "Operators");
  arrange();
  return {
    element,
    choose(name) {
      chosen = name;
      for (const row of windowed.body.querySelectorAll("tr.op")) {
        const button = row.querySelector("button");
        const on = button?.textContent === name;
        row.classList.toggle("on", on);
        button?.setAttribute("aria-pressed", String(on));
      }
      windowed.reveal(
        lines.findIndex((line) => "operator" in line && line.operator.operator === name),
      );
    },
    show(text) {
      search = text;
      arrange();
    },
    redraw: () => windowed.refresh(),
    showCourse(found) {
      course = found;
      courses = new Map(found.operators.map((each) => [`${each.stage} ${each.name}`, each.busy]));
      windowed.refresh();
    },
    csv: () => ({
      columns: [
        { title: "stage" },
        { title: "operator" },
        { title: "busy", format: numbers.percent },
        { title: "on a core", format: numbers.percent },
        { title: "of all CPU", format: numbers.percent },
        { title: "alone allows batches/s", format: numbers.rateNumber },
        { title: "bytes out a second", format: numbers.byteRate },
      ],
      rows: rows.map(({ operator, cpu }) => [
        operator.stage,
        operator.operator,
        operator.busy_ratio,
        operator.on_cpu_ratio,
        cpu,
        operator.accounted_batches_per_second ?? null,
        operator.bytes_out_per_second ?? null,
      ]),
    }),
  };
}

// Whether any operator's time at work was split further.
export function isSplit(rows: readonly OperatorRow[]): boolean {
  return rows.some((row) => parts(splitOf(row))[0].key === "c");
}
