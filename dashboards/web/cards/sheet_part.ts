// A part of the characterization sheet: figures of this run beside the published ones.
import type { Child } from "../element";
import { h } from "../element";
import { NONE } from "../numbers";
import type { CardText, SheetFigure, SheetPart, SheetStage, SheetValue } from "../types";
import { card } from "./card";
import type { Cell } from "./table";

const MODELS = ["rm1", "rm2", "rm3"];

// The interval on a line of its own: it is as long as the value.
function here(text: string): Child {
  const [value, interval] = text.split(/ (?=\[)/, 2);
  return [h("b", null, value), " ", interval ? h("span", { class: "u" }, interval) : null];
}

const shown = (value: SheetValue | undefined): string => value?.text ?? NONE;
// In a report of one file published values are words alone.
const cell = (value: SheetValue | undefined): Cell => value?.value ?? value?.text ?? null;

function scroller(label: string, head: Child, rows: Child): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      { class: "sheet" },
      h("caption", { class: "vh" }, label),
      h("thead", null, h("tr", null, head)),
      h("tbody", null, rows),
    ),
  );
}

const title = (text: string, numeric: boolean) =>
  h("th", { scope: "col", class: numeric && "num" }, text);

export function sheetPartCard(part: SheetPart, text: CardText): HTMLElement {
  const compared = part.figures.some((figure) => Object.keys(figure.published).length > 0);
  // A reason that several figures share stands at the first of them.
  let before = "";
  const row = (figure: SheetFigure) => {
    const reason = figure.here.reason ?? "";
    const said = reason === before ? "" : reason;
    before = reason;
    return h(
      "tr",
      null,
      h(
        "th",
        { scope: "row" },
        figure.name,
        said ? h("span", { class: "why" }, said) : null,
        figure.difference
          ? h(
              "span",
              { class: "why" },
              figure.why ? `${figure.difference}. ${figure.why}` : figure.difference,
            )
          : null,
      ),
      h("td", { class: "num" }, figure.here.text ? here(figure.here.text) : NONE),
      compared
        ? MODELS.map((model) => h("td", { class: "num dim" }, shown(figure.published[model])))
        : null,
    );
  };
  const head = [
    title("figure", false),
    title("this run", true),
    compared ? MODELS.map((model) => title(model, true)) : null,
  ];
  return card({
    key: `sheet-${part.key}`,
    text,
    svg: false,
    chart: scroller(text.question, head, part.figures.map(row)),
    table: () => ({
      columns: [
        { title: "figure" },
        { title: "this run (SI units)" },
        ...MODELS.map((model) => ({ title: model })),
        { title: "published by" },
        { title: "source" },
        { title: "difference" },
        { title: "why" },
      ],
      rows: part.figures.map((figure): Cell[] => [
        figure.name,
        cell(figure.here),
        ...MODELS.map((model) => cell(figure.published[model])),
        figure.source ?? "",
        figure.told_by ?? figure.here.reason ?? "",
        figure.difference ?? "",
        figure.why ?? "",
      ]),
    }),
  });
}

export function sheetStagesCard(stages: readonly SheetStage[], text: CardText): HTMLElement {
  const columns: [string, (stage: SheetStage) => SheetValue][] = [
    ["CPU, of all", (stage) => stage.cpu],
    ["cores", (stage) => stage.cores],
    ["CPU a row", (stage) => stage.cpu_per_row],
    ["accounted bytes", (stage) => stage.bytes],
    ["NIC", (stage) => stage.nic],
  ];
  const row = (stage: SheetStage) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, stage.part),
      columns.map(([, value]) => h("td", { class: "num" }, shown(value(stage)))),
    );
  const head = [title("part", false), columns.map(([name]) => title(name, true))];
  return card({
    key: "sheet-stages",
    text,
    svg: false,
    chart: scroller(text.question, head, stages.map(row)),
    table: () => ({
      columns: [{ title: "part" }, ...columns.map(([name]) => ({ title: `${name} (SI units)` }))],
      rows: stages.map((stage): Cell[] => [
        stage.part,
        ...columns.map(([, value]) => cell(value(stage))),
      ]),
    }),
  });
}
