// The pages: from the address to what is shown.
import { current, followLinks, onNavigate } from "./address";
import type { Address, Page } from "./address";
import { offline, offlinePaths } from "./api";
import { failure, plainCard } from "./cards/card";
import { h, hideTip } from "./element";
import { comparison, comparisons } from "./pages/compare";
import type { MakePage, Shown } from "./pages/context";
import { environment } from "./pages/environment";
import { fleet } from "./pages/fleet";
import { showHead } from "./pages/frame";
import { io } from "./pages/io";
import { operators } from "./pages/operators";
import { overview } from "./pages/overview";
import { runs } from "./pages/runs";
import { sheet } from "./pages/sheet";
import { sql } from "./pages/sql";
import { whatIf } from "./pages/what_if";
import { openSession } from "./session";

const unknown: MakePage = () =>
  Promise.resolve({
    title: "headrace",
    body: [
      h("h1", { class: "vh" }, "No such page"),
      plainCard(
        "",
        "There is no page at this address.",
        h("p", null, h("a", { href: offline ? "#/" : "/" }, "All runs")),
      ),
    ],
  });

const OF_RUN = { overview, operators, io, "what-if": whatIf, sheet, environment, unknown };
const PAGES: Partial<Record<Exclude<Page, "compare">, MakePage>> = SERVED
  ? { ...OF_RUN, runs, fleet, sql }
  : OF_RUN;

function pageOf({ page, id }: Address): MakePage {
  if (page !== "compare") return PAGES[page] ?? unknown;
  return SERVED ? (id === null ? comparisons : comparison) : unknown;
}

let shown: AbortController | null = null;

const PATIENCE = 400; // milliseconds until a page that is not there says that it comes

// The first look at a long run takes seconds: all of it is read then.
function sayWait(main: HTMLElement): number {
  return window.setTimeout(() => {
    const text = "Reading what was recorded. The first look at a long run takes some seconds.";
    if (!main.querySelector(":scope > :not(noscript)"))
      main.append(h("p", { class: "reading", role: "status" }, text));
  }, PATIENCE);
}

function errorPage(error: unknown): Shown {
  return {
    title: "headrace",
    body: [
      h("h1", { class: "vh" }, "This page cannot be shown"),
      plainCard(
        "",
        "This page cannot be shown.",
        failure(error),
        h("p", null, h("a", { href: offline ? "#/" : "/" }, "All runs")),
      ),
    ],
  };
}

// A report of one file begins with the run that it is about.
function firstOfFile(): void {
  const run = offlinePaths
    .map((path) => /^\/api\/runs\/(\d+)\/report/.exec(path))
    .find((match) => match !== null);
  if (run && current().page === "runs") history.replaceState(null, "", `#/run/${run[1]}`);
}

async function show(moved: boolean): Promise<void> {
  shown?.abort();
  const own = new AbortController();
  shown = own;
  hideTip();
  const choosesRun = document.activeElement?.getAttribute("data-focus") === "run";
  if (offline) firstOfFile();
  const address = current();
  const main = document.getElementById("main") as HTMLElement;
  showHead();
  main.setAttribute("aria-busy", "true");
  const make = pageOf(address);
  const waiting = sayWait(main);
  let page: Shown;
  try {
    await openSession();
    page = await make({ address, id: address.id ?? 0, signal: own.signal });
  } catch (error) {
    if (own.signal.aborted) return;
    page = errorPage(error);
  } finally {
    window.clearTimeout(waiting);
  }
  if (own.signal.aborted) return;
  document.title = page.title;
  main.replaceChildren(...h("div", null, page.body).childNodes);
  main.removeAttribute("aria-busy");
  page.after?.();
  if (moved) {
    window.scrollTo(0, 0);
    // A reader of screens begins at the new page, not at the link that led there. Who goes through the
    // list of runs by the keyboard stays in it.
    const list = choosesRun ? document.querySelector<HTMLElement>('#top [data-focus="run"]') : null;
    (list ?? main).focus({ preventScroll: true });
  }
}

// Not by its address: in a report of one file that is the view.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main")?.focus();
});
followLinks();
onNavigate(() => void show(true));
void show(false);
