// Any question of the store, in SQL over its documented views. The question stands in the address.
import { current, replaceQuery } from "../address";
import { ApiError, get, getOr, offline, post } from "../api";
import { emptyCard, failure, plainCard } from "../cards/card";
import { tableElement } from "../cards/table";
import type { Table } from "../cards/table";
import { csvText, save } from "../download";
import { h } from "../element";
import * as numbers from "../numbers";
import type { SqlResult, Store } from "../types";
import type { Context, Shown } from "./context";

const LIMIT = 1000;
const FIRST =
  "SELECT run_id, name, state, duration_ns * 1e-9 AS seconds\nFROM run_summary\nORDER BY run_id DESC\nLIMIT 20";

type Question = { title: string; sql: string };

// Those of the newest run, with its id filled in.
async function savedQuestions(signal: AbortSignal): Promise<Question[]> {
  const store = await get<Store>("/api/store", signal);
  if (store.latest === null || store.latest === undefined) return [];
  const path = `/api/runs/${store.latest}/questions`;
  return (await getOr<{ questions: Question[] }>(path, { questions: [] }, signal)).questions;
}

function tableOf(result: SqlResult): Table {
  return { columns: result.columns.map((title) => ({ title })), rows: result.rows };
}

function resultElement(result: SqlResult): HTMLElement {
  const table = tableOf(result);
  const rows = numbers.plural(result.rows.length, "row");
  const cut = result.truncated
    ? ` The first ${numbers.count(LIMIT)} only: add a LIMIT or a condition.`
    : "";
  const csv = h(
    "button",
    { class: "btn", type: "button", click: () => save("result.csv", "text/csv", csvText(table)) },
    "CSV",
  );
  return plainCard(
    "Result",
    `${rows} in ${numbers.seconds(result.elapsed_seconds)}.${cut}`,
    result.rows.length > 0
      ? tableElement(table, "Result of the query")
      : h("p", { class: "dim" }, "No row matches."),
    h("div", { class: "buttons" }, csv),
  );
}

function editor(questions: readonly Question[], signal: AbortSignal) {
  const asked = current().query.get("q");
  const out = h("div", { class: "page" });
  const status = h("p", { class: "vh", role: "status" });
  const text = h("textarea", {
    id: "sql",
    rows: 9,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    "data-focus": "sql",
  });
  text.value = asked ?? questions[0]?.sql ?? FIRST;
  let own = new AbortController();
  const run = async () => {
    own.abort();
    own = new AbortController();
    const mine = own;
    signal.addEventListener("abort", () => mine.abort());
    replaceQuery({ q: text.value });
    out.setAttribute("aria-busy", "true");
    try {
      const result = await post<SqlResult>(
        "/api/sql",
        { sql: text.value, limit: LIMIT },
        mine.signal,
      );
      if (mine.signal.aborted) return;
      out.replaceChildren(resultElement(result));
      status.textContent = numbers.plural(result.rows.length, "row");
    } catch (error) {
      if (mine.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      out.replaceChildren(plainCard("Result", "This query was refused.", failure(error)));
    }
    out.removeAttribute("aria-busy");
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void run();
    }
  });
  const saved = h(
    "ul",
    { class: "saved" },
    questions.map((question) => {
      const choose = () => {
        text.value = question.sql;
        void run();
      };
      return h(
        "li",
        null,
        h("button", { type: "button", class: "more", click: choose }, question.title),
      );
    }),
  );
  if (asked !== null) void run();
  const form = plainCard(
    "What do you want to know?",
    "SQL over the views of the store",
    h("label", { class: "vh", for: "sql" }, "Query"),
    text,
    h(
      "div",
      { class: "buttons" },
      h("button", { class: "btn primary", type: "button", click: () => void run() }, "Run"),
      h("span", { class: "dim" }, "Ctrl+Enter. It reads only, for 5 seconds at most."),
    ),
  );
  const list =
    questions.length > 0 ? plainCard("Saved questions", "Of the newest run", saved) : null;
  return [list ? h("div", { class: "two wide-left" }, form, list) : form, status, out];
}

export async function sql({ signal }: Context): Promise<Shown> {
  const heading = h("h1", { class: "vh" }, "SQL");
  const title = "SQL · headrace";
  if (offline) {
    const empty = "A file holds no database to ask.";
    return {
      title,
      body: [
        heading,
        emptyCard(
          { question: "What do you want to know?", empty, command: "headrace serve" },
          "sql",
        ),
      ],
    };
  }
  return { title, body: [heading, editor(await savedQuestions(signal), signal)] };
}
