// The operators of a run: what each costs, one of them closer, and in which code.
import { current, replaceQuery } from "../address";
import { get, getOr, offline } from "../api";
import { card, plainCard } from "../cards/card";
import { operatorDrawer } from "../cards/operator_drawer";
import { isSplit, operatorRows, operatorTable, splitOf } from "../cards/operator_table";
import type { OperatorRow } from "../cards/operator_table";
import { firstKind, stacksCard } from "../cards/stacks";
import type { StacksCard } from "../cards/stacks";
import { stacksDiff } from "../cards/stacks_diff";
import { stateLegend } from "../charts/states";
import { h, oncePerFrame } from "../element";
import { timeline } from "../time";
import type { CardText, OffCpu, OperatorCourse, Report } from "../types";
import type { Context, Shown } from "./context";
import { runTitle, showRun, watchRange } from "./frame";
import { limitsOf } from "./overview";

// The operator of the address, else the one that limits, else the busiest.
function firstChoice(rows: readonly OperatorRow[]): OperatorRow | null {
  const asked = current().query.get("op");
  const busiest = [...rows].sort(
    (a, b) => (b.operator.busy_ratio ?? 0) - (a.operator.busy_ratio ?? 0),
  )[0];
  return (
    rows.find((row) => row.operator.operator === asked) ??
    rows.find((row) => row.limit) ??
    busiest ??
    null
  );
}

function isBlocked(row: OperatorRow | null): boolean {
  if (!row) return false;
  const split = splitOf(row);
  return (split.b ?? 0) > (split.c ?? 0);
}

interface Parts {
  report: Report;
  rows: OperatorRow[];
  offCpu: OffCpu | null;
  stacks: StacksCard | null;
}

function operatorsCard(id: number, parts: Parts, text: CardText, signal: AbortSignal): HTMLElement {
  const { report, rows } = parts;
  const drawer = h("div", { class: "drawerbox" });
  const shown = (row: OperatorRow) => {
    const { stage, operator } = row.operator;
    drawer.replaceChildren(
      operatorDrawer(row, parts.offCpu, () => parts.stacks?.focus(stage, operator)),
    );
  };
  const first = firstChoice(rows);
  const table = operatorTable({
    report,
    rows,
    chosen: first?.operator.operator ?? "",
    onChoose(row) {
      replaceQuery({ op: row.operator.operator });
      table.choose(row.operator.operator);
      shown(row);
    },
  });
  if (first) shown(first);
  getOr<OperatorCourse | null>(`/api/runs/${id}/operators/course?px=120`, null, signal).then(
    (course) => {
      if (course) table.showCourse(course);
    },
    () => undefined, // another page is shown
  );
  timeline.subscribe((rangeChanged) => {
    if (rangeChanged) table.redraw();
  }, signal);
  const find = h("input", {
    type: "search",
    placeholder: "Find an operator",
    "aria-label": "Find an operator",
    "data-focus": "find operator",
  });
  find.addEventListener(
    "input",
    oncePerFrame(() => table.show(find.value.trim().toLowerCase())),
  );
  return card({
    key: "operators",
    text,
    chart: h("div", { class: "opgrid" }, table.element, drawer),
    legend: stateLegend(isSplit(rows)),
    controls: rows.length > 12 ? find : null,
    table: () => table.csv(),
  });
}

export async function operators({ id, signal }: Context): Promise<Shown> {
  const at = `/api/runs/${id}`;
  const [report, offCpu] = await Promise.all([
    get<Report>(`${at}/report?brief=1`, signal),
    getOr<OffCpu | null>(`${at}/off_cpu`, null, signal),
  ]);
  timeline.begin([0, report.run.duration_seconds || 1]);
  const rows = operatorRows(report);
  const parts: Parts = { report, rows, offCpu, stacks: null };
  const cards = report.cards ?? {};
  const limits = limitsOf(report);
  if (report.verdict?.limit?.operator) limits.add(report.verdict.limit.operator);
  const kind = firstKind(isBlocked(firstChoice(rows)));
  if (cards.stacks && !cards.stacks.empty) {
    parts.stacks = stacksCard(id, kind, limits, cards.stacks, signal);
  }
  const none: CardText = {
    question: "Which operator costs what?",
    empty: "This run has no operators: the program is not instrumented.",
    command: "headrace doctor",
  };
  const text = cards.operators ?? none;
  return {
    title: `Operators of ${runTitle(report)}`,
    body: [
      h("h1", { class: "vh" }, `Operators of ${report.run.name || `run ${id}`}`),
      rows.length === 0
        ? card({
            key: "operators",
            text: { ...text, empty: text.empty ?? none.empty },
            chart: null,
          })
        : operatorsCard(id, parts, text, signal),
      parts.stacks?.element ??
        (cards.stacks
          ? card({ key: "stacks", text: cards.stacks, chart: null })
          : plainCard("In which code?", "No stacks were sampled.")),
      SERVED && parts.stacks && !offline ? stacksDiff(id, kind, signal) : null,
    ],
    after: () => {
      showRun(report);
      watchRange(signal);
    },
  };
}
