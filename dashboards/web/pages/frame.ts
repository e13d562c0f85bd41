// The frame around all pages: the brand, the pages of the database, and of a run its name, what it
// was, and its own pages.
import { current, go, link, linkTo } from "../address";
import type { Page } from "../address";
import { getOr, offline } from "../api";
import type { Child } from "../element";
import { drawing, h, s } from "../element";
import * as numbers from "../numbers";
import { themeSwitch } from "../theme";
import { timeline } from "../time";
import type { Report, RunRow, Runs } from "../types";

const DATABASE_PAGES: readonly [Page, string][] = [
  ["runs", "Runs"],
  ["compare", "Compare"],
  ["fleet", "Fleet"],
  ["sql", "SQL"],
];
const RUN_PAGES: readonly [Page, string][] = [
  ["overview", "Overview"],
  ["operators", "Operators"],
  ["io", "IO layout"],
  ["what-if", "What-if"],
  ["sheet", "Characterization"],
  ["environment", "Environment"],
];
const LIVE_WORDS: Record<string, string> = {
  recording: "recording",
  complete: "complete",
  interrupted: "interrupted",
  lost: "connection lost, trying again",
};

function brand(): HTMLElement {
  const mark = drawing(22, 18, null);
  mark.append(
    s("path", { d: "M1 3h6l4 5h10M1 15h6l4-5h10", class: "brand-ink" }),
    s("path", { d: "M1 9h20", class: "brand-water" }),
  );
  return h("a", { class: "brand", href: link("runs") }, mark, h("span", null, "headrace"));
}

function navigation(
  pages: readonly [Page, string][],
  id: number | null,
  name: string,
): HTMLElement {
  const here = current();
  const links = pages.map(([page, text]) => {
    const active = here.page === page;
    return h("a", { ...linkTo(page, id), "aria-current": active ? "page" : null }, text);
  });
  return h("nav", { "aria-label": name }, links);
}

const runName = (run: { id: number; name: string }) =>
  run.name ? `${run.name} (${run.id})` : `run ${run.id}`;

export function runTitle(report: Report): string {
  return `${report.run.name || `run ${report.run.id}`} · headrace`;
}

const state = h("span", { class: "state" });
const rangeWords = h("span");
const wholeRun = {
  class: "more",
  type: "button",
  "data-focus": "whole run",
  click: () => timeline.showAll(),
};
const range = h(
  "span",
  { class: "range", hidden: true },
  rangeWords,
  " ",
  h("button", wholeRun, "show all"),
);
const runBar = h("div", { class: "runbar" });
let runs: RunRow[] | null = null;

export function setLiveState(name: string): void {
  state.className = `state state-${name}`;
  state.textContent = LIVE_WORDS[name] ?? name;
  state.hidden = name === "complete" || name === "";
}

// The run's name; where there is a server, a list of the others.
function runChoice(report: Report): HTMLElement {
  const own = { id: report.run.id, name: report.run.name };
  if (offline) return h("b", { class: "runname" }, runName(own));
  const list: { id: number; name: string }[] = runs ?? [];
  const options = list.some((run) => run.id === own.id) ? list : [own, ...list];
  const select = h(
    "select",
    { "aria-label": "Run", "data-focus": "run" },
    options.map((run) => h("option", { value: run.id, selected: run.id === own.id }, runName(run))),
  );
  select.addEventListener("change", () => go(link(current().page, Number(select.value))));
  return h("span", { class: "runname" }, select);
}

function facts(report: Report): string {
  const { run, resources } = report;
  const parts = [
    run.duration_seconds ? numbers.seconds(run.duration_seconds) : "",
    resources?.cores_budget ? numbers.plural(resources.cores_budget, "core") : "",
    run.hostname ?? "",
    run.started_seconds ? numbers.moment(run.started_seconds) : "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

// Shows beside the run's name that charts of time show a part of it, and the way back, while the page
// lasts.
export function watchRange(signal: AbortSignal): void {
  const show = () => {
    range.hidden = timeline.whole;
    const format = (at: number) => `${at.toFixed(timeline.to - timeline.from < 20 ? 2 : 0)} s`;
    rangeWords.textContent = `${format(timeline.from)} to ${format(timeline.to)}`;
  };
  timeline.subscribe((rangeChanged) => {
    if (rangeChanged) show();
  }, signal);
  signal.addEventListener("abort", () => (range.hidden = true));
  show();
}

// On a narrow screen not all links to pages are in view: the one of this page is, or what was, where
// the page is the same as `before`.
function keepInView(before: string | null, moved: number): void {
  const links = runBar.querySelector("nav");
  const active = links?.querySelector('[aria-current="page"]');
  if (!links || !active) return;
  if (active.textContent === before) {
    links.scrollLeft = moved;
    return;
  }
  const [box, own] = [links.getBoundingClientRect(), active.getBoundingClientRect()];
  links.scrollLeft += own.left + own.width / 2 - (box.left + box.width / 2);
}

// Shows which run the page is about. Called again when a live run has a new report.
export function showRun(report: Report): void {
  setLiveState(report.run.state);
  const before = runBar.querySelector("nav");
  const [moved, page] = [before?.scrollLeft ?? 0, before?.querySelector('[aria-current="page"]')];
  runBar.replaceChildren(
    h(
      "div",
      { class: "inner" },
      runChoice(report),
      state,
      h("span", { class: "dim meta" }, facts(report)),
      range,
    ),
    navigation(RUN_PAGES, report.run.id, "Pages of this run"),
  );
  runBar.hidden = false;
  keepInView(page?.textContent ?? null, moved);
  if (runs === null && !offline) {
    runs = [];
    void getOr<Runs>("/api/runs?limit=50", { runs: [], next: null }).then((answer) => {
      runs = answer.runs.filter((run) => run.comparison === null);
      const old = runBar.querySelector(".runname");
      if (old && !old.contains(document.activeElement)) old.replaceWith(runChoice(report));
    });
  }
}

// The head of a new page. A page of a run shows it when its report is there.
export function showHead(): void {
  const here = current();
  const top = document.getElementById("top");
  const ofRun = here.id !== null && here.page !== "compare" && here.page !== "fleet";
  if (!ofRun) runBar.replaceChildren();
  runBar.hidden = !ofRun || runBar.childElementCount === 0;
  // The list may have grown since.
  if (!ofRun) runs = null;
  const pages = offline ? null : navigation(DATABASE_PAGES, null, "Pages of this database");
  top?.replaceChildren(h("div", { class: "topbar" }, brand(), pages, themeSwitch()), runBar);
}

// Puts a body in place of another, with the keyboard and the scroll where they were.
export function keepPlace(box: HTMLElement, body: Child): void {
  const focused = document.activeElement;
  const key = box.contains(focused) ? focused?.getAttribute("data-focus") : null;
  const scroll = window.scrollY;
  box.replaceChildren(...h("div", null, body).childNodes);
  if (key !== null && key !== undefined) {
    box
      .querySelector<HTMLElement>(`[data-focus="${CSS.escape(key)}"]`)
      ?.focus({ preventScroll: true });
  }
  if (window.scrollY !== scroll) window.scrollTo(0, scroll);
}
