// A card: a question, its answer as a sentence, the evidence, and what can be done with it. The
// sentences are made by the program that analyses the run, so that pages and terminal agree.
import { link } from "../address";
import { ApiError, offline } from "../api";
import { csvText, save, svgText } from "../download";
import type { Child } from "../element";
import { h } from "../element";
import type { CardText } from "../types";
import { command } from "./command";
import type { Table } from "./table";
import { tableElement } from "./table";

export interface CardParts {
  key: string; // names its files and keeps what is open
  text: CardText;
  chart: Child;
  legend?: Child;
  controls?: Child; // beside the heading
  table?: () => Table;
  svg?: boolean; // false: nothing is drawn
  class?: string;
}

// What is open stays open when a live run draws its cards again.
const open = new Set<string>();

function heading(question: string, answer: string): HTMLElement {
  return h("h2", null, h("span", { class: "ask" }, question), " ", answer);
}

interface Panel {
  button: HTMLButtonElement;
  body: HTMLElement;
}

// A button that shows what is below the card; it is made when it is first asked for.
function panel(key: string, title: string, make: () => Child): Panel {
  const id = `panel-${key}-${title.replace(/\W+/g, "-").toLowerCase()}`;
  const body = h("div", { class: "panel", id, hidden: true });
  const button = h(
    "button",
    { class: "more", type: "button", "aria-controls": id, "data-focus": id },
    title,
  );
  const set = (shown: boolean) => {
    if (shown && !body.firstChild) body.append(h("div", null, make()));
    body.hidden = !shown;
    button.setAttribute("aria-expanded", String(shown));
    if (shown) open.add(id);
    else open.delete(id);
  };
  button.addEventListener("click", () => set(body.hidden));
  set(open.has(id));
  return { button, body };
}

function tablePanel(key: string, text: CardText, table: () => Table): Panel {
  return panel(key, "As a table", () => tableElement(table(), `${text.question} As a table`));
}

function downloads(parts: CardParts, chart: HTMLElement): Child[] {
  const { key, table } = parts;
  const button = (title: string, name: string, run: () => void) =>
    h(
      "button",
      {
        class: "more file",
        type: "button",
        "aria-label": `${name} of: ${parts.text.question}`,
        click: run,
      },
      title,
    );
  return [
    parts.svg === false
      ? null
      : button("SVG", "SVG drawing", () => save(`${key}.svg`, "image/svg+xml", svgText(chart))),
    table
      ? button("CSV", "CSV file", () => save(`${key}.csv`, "text/csv", csvText(table())))
      : null,
  ];
}

function footer(parts: CardParts, chart: HTMLElement): Child[] {
  const { key, text } = parts;
  const read = text.read?.length
    ? panel(key, "How to read this", () => (text.read ?? []).map((line) => h("p", null, line)))
    : null;
  const table = parts.table ? tablePanel(key, text, parts.table) : null;
  const sql =
    text.sql && !offline
      ? h("a", { class: "more", href: link("sql", null, { q: text.sql }) }, "Open as SQL")
      : null;
  const files = h("span", { class: "files" }, downloads(parts, chart));
  return [
    h("div", { class: "foot" }, read?.button, table?.button, sql, files),
    read?.body,
    table?.body,
  ];
}

// The card of a chart. `text.empty` instead of an answer: the sentence, and the command that would
// fill it.
export function card(parts: CardParts): HTMLElement {
  const { text } = parts;
  if (text.empty) return emptyCard(text, parts.key);
  const chart = h("div", { class: "chart" }, parts.chart);
  return h(
    "section",
    { class: `card ${parts.class ?? ""}`.trim(), "data-card": parts.key },
    h(
      "header",
      null,
      heading(text.question, text.answer ?? ""),
      h("div", { class: "controls" }, parts.controls),
    ),
    chart,
    parts.legend,
    footer(parts, chart),
  );
}

export function emptyCard(text: CardText, key: string): HTMLElement {
  return h(
    "section",
    { class: "card empty", "data-card": key },
    h("header", null, heading(text.question, text.empty ?? "")),
    text.command ? command(text.command, "cmd flat") : null,
  );
}

// Several charts that have nothing to show, in one card: what each would have answered, why it
// cannot, and the command that would fill it.
export function emptyCards(texts: readonly CardText[]): HTMLElement {
  const lines = new Set(texts.map((text) => text.command ?? "").filter((line) => line !== ""));
  return h(
    "section",
    { class: "card empty", "data-card": "not-recorded" },
    h("header", null, heading("What can this run not say?", numberedQuestions(texts.length))),
    h(
      "dl",
      { class: "pairs single" },
      texts.map((text) => h("div", null, h("dt", null, text.question), h("dd", null, text.empty))),
    ),
    [...lines].map((line) => command(line, "cmd flat")),
  );
}

const numberedQuestions = (count: number) =>
  count === 1
    ? "One question has no answer in this recording"
    : `${count} questions have no answer in this recording`;

// A card without a chart: a heading of the page itself, and what belongs to it.
export function plainCard(question: string, title: string, ...body: Child[]): HTMLElement {
  return h(
    "section",
    { class: "card" },
    title || question ? h("header", null, heading(question, title)) : null,
    body,
  );
}

// What went wrong, where, and what would help.
export function failure(error: unknown): HTMLElement {
  const known = error instanceof ApiError ? error : null;
  const what = known?.what ?? (error instanceof Error ? error.message : String(error));
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("p", null, h("b", null, what)),
    known?.where ? h("p", { class: "dim" }, known.where) : null,
    known?.fix ? h("p", null, known.fix) : null,
  );
}

// A card that cannot be drawn says so in its place; the others are not harmed by it.
export function guarded(
  text: CardText | undefined,
  key: string,
  make: (text: CardText) => HTMLElement | null,
) {
  if (!text) return null;
  try {
    return text.empty ? emptyCard(text, key) : make(text);
  } catch (error) {
    return plainCard(text.question, "This card could not be drawn.", failure(error));
  }
}
