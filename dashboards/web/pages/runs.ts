// The runs of a database, the newest first. Runs of one comparison are folded under it.
import { current, link, replaceQuery } from "../address";
import { get, getOr } from "../api";
import { emptyCard, failure, plainCard } from "../cards/card";
import { shortPath, trendsCard } from "../cards/trends";
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import type { RunRow, Runs, Store, Trends } from "../types";
import { VERDICTS } from "./compare";
import type { Context, Shown } from "./context";

const PAGE = 100;
const WAIT = 200; // milliseconds after the last letter

function tagsOf(run: RunRow): string[] {
  if (Array.isArray(run.tags)) return run.tags;
  return (run.tags ?? "").split(/[\s,]+/).filter((tag) => tag !== "");
}

function waits(ratio: number | null, trains = true): Child {
  if (!trains) return h("span", { class: "dim" }, "no trainer");
  if (ratio === null || ratio === undefined) return h("span", { class: "dim" }, numbers.NONE);
  const share = Math.min(1, Math.max(0, ratio));
  return h(
    "span",
    { class: "waits" },
    h(
      "span",
      { class: "statebar", "aria-hidden": "true" },
      h("i", { class: "fill-compute", style: { width: `${(1 - share) * 100}%` } }),
      h("i", { class: "fill-wait", style: { width: `${share * 100}%` } }),
    ),
    numbers.percent(ratio),
  );
}

function runRow(run: RunRow, search: (text: string) => void): HTMLElement {
  const state =
    run.state && run.state !== "complete"
      ? h("span", { class: `state state-${run.state}` }, run.state)
      : null;
  return h(
    "tr",
    null,
    h(
      "th",
      { scope: "row" },
      h("a", { href: link("overview", run.id) }, run.name || `run ${run.id}`),
      h("span", { class: "u" }, ` ${run.id}`),
      " ",
      state,
      tagsOf(run).map((tag) =>
        h(
          "button",
          {
            class: "tagword",
            type: "button",
            "aria-label": `Show runs with the tag ${tag}`,
            click: () => search(tag),
          },
          tag,
        ),
      ),
    ),
    h(
      "td",
      { class: "hide" },
      run.pipeline ? shortPath(run.pipeline) : run.program,
      run.kind && run.kind !== "pipeline" ? h("span", { class: "u" }, ` ${run.kind}`) : null,
    ),
    h("td", { class: "num hide" }, numbers.moment(run.started_seconds)),
    h("td", { class: "num hide" }, numbers.seconds(run.duration_seconds)),
    h("td", { class: "num" }, numbers.rate(run.rows_per_second, "rows")),
    h("td", null, waits(run.stall_ratio, run.trains)),
  );
}

function comparisonRows(
  id: number,
  members: RunRow[],
  search: (text: string) => void,
): HTMLElement[] {
  const rows = members.map((run) => runRow(run, search));
  for (const row of rows) {
    row.hidden = true;
    row.classList.add("member");
  }
  const button = h(
    "button",
    { class: "more", type: "button", "aria-expanded": "false", "data-focus": `fold ${id}` },
    numbers.plural(members.length, "run"),
  );
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(shown));
    for (const row of rows) row.hidden = !shown;
  });
  const newest = members[0];
  const head = h(
    "tr",
    { class: "folded" },
    h(
      "th",
      { scope: "row" },
      h("a", { href: link("compare", id) }, `comparison ${id}`),
      " ",
      button,
    ),
    h("td", { class: "hide" }, newest.pipeline ? shortPath(newest.pipeline) : newest.program),
    h("td", { class: "num hide" }, numbers.moment(newest.started_seconds)),
    h("td", { class: "num hide" }),
    h("td", { class: "num" }),
    h("td", null, VERDICTS[newest.comparison_verdict ?? ""] ?? ""),
  );
  return [head, ...rows];
}

function bodyRows(runs: readonly RunRow[], search: (text: string) => void): HTMLElement[] {
  const members = new Map<number, RunRow[]>();
  for (const run of runs) {
    if (run.comparison !== null)
      members.set(run.comparison, [...(members.get(run.comparison) ?? []), run]);
  }
  const rows: HTMLElement[] = [];
  for (const run of runs) {
    if (run.comparison === null) {
      rows.push(runRow(run, search));
      continue;
    }
    const own = members.get(run.comparison);
    if (own) rows.push(...comparisonRows(run.comparison, own, search));
    members.delete(run.comparison);
  }
  return rows;
}

function emptyStore(store: Store): Child {
  return emptyCard(
    {
      question: `What has been recorded in ${store.database}?`,
      empty: "Nothing yet. This command records a run of 10 seconds.",
      command: `${store.program ?? "headrace"} demo`,
    },
    "runs",
  );
}

function listCard(store: Store, first: Runs, signal: AbortSignal): Child {
  let runs = first.runs;
  let next = first.next;
  let asked = new AbortController();
  let timer = 0;
  const find = h("input", {
    type: "search",
    placeholder: "Name, tag, pipeline",
    "aria-label": "Search runs",
    value: current().query.get("q") ?? "",
    "data-focus": "search",
  });
  const body = h("tbody");
  const note = h("p", { class: "note", role: "status" });
  const more = h("button", { class: "btn", type: "button" }, "Older runs");
  const show = () => {
    body.replaceChildren(...bodyRows(runs, search));
    more.hidden = next === null;
    note.textContent = runs.length === 0 ? "No run matches." : "";
  };
  const load = async (after: number | null) => {
    asked.abort();
    asked = new AbortController();
    const own = asked;
    signal.addEventListener("abort", () => own.abort());
    const q = encodeURIComponent(find.value.trim());
    const from = after === null ? "" : `&after=${after}`;
    try {
      const answer = await get<Runs>(`/api/runs?q=${q}${from}&limit=${PAGE}`, own.signal);
      runs = after === null ? answer.runs : [...runs, ...answer.runs];
      next = answer.next;
      show();
    } catch (error) {
      if (!own.signal.aborted) note.replaceChildren(failure(error));
    }
  };
  function search(text: string): void {
    find.value = text;
    replaceQuery({ q: text || null });
    void load(null);
  }
  find.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => search(find.value), WAIT);
  });
  more.addEventListener("click", () => void load(next));
  show();
  const column = (title: string, tone = "") => h("th", { scope: "col", class: tone }, title);
  const list = plainCard(
    `What has been recorded in ${store.database}?`,
    numbers.plural(store.runs_count, "run"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs" },
      h(
        "table",
        { class: "runs" },
        h("caption", { class: "vh" }, "Runs, the newest first"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            column("run"),
            column("pipeline", "hide"),
            column("started", "num hide"),
            column("length", "num hide"),
            column("rate, whole run", "num"),
            column("waits, whole run"),
          ),
        ),
        body,
      ),
    ),
    note,
    h(
      "p",
      { class: "note" },
      "The whole run includes its start and its end. The page of a run has the figures of its steady part.",
    ),
    h("div", { class: "buttons" }, more),
  );
  list.querySelector("header")?.append(h("div", { class: "controls" }, find));
  return list;
}

export async function runs({ signal }: Context): Promise<Shown> {
  const q = encodeURIComponent(current().query.get("q") ?? "");
  const [store, trends, first] = await Promise.all([
    get<Store>("/api/store", signal),
    getOr<Trends>("/api/trends", { answer: "", trends: [] }, signal),
    get<Runs>(`/api/runs?q=${q}&limit=${PAGE}`, signal),
  ]);
  const empty = store.runs_count === 0 && first.runs.length === 0;
  return {
    title: "Runs · headrace",
    body: [
      h("h1", { class: "vh" }, `Runs of ${store.database}`),
      empty ? emptyStore(store) : [listCard(store, first, signal), trendsCard(trends)],
    ],
  };
}
