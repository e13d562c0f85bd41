// The address is the view: what is seen can be sent to somebody else. In the served pages it is the
// path and the query; in a report of one file, which has one path, the same text stands in the hash.
import { offline } from "./api";

export type Page =
  | "runs"
  | "overview"
  | "operators"
  | "io"
  | "what-if"
  | "sheet"
  | "environment"
  | "compare"
  | "fleet"
  | "sql"
  | "unknown";

// Query keys: t=FROM-TO the range of time in seconds, at= the pinned time, op= operator,
// kind= stacks, stripe= of the table, with= figure of a comparison, q= search or SQL.
export interface Address {
  page: Page;
  id: number | null; // a run's, a comparison's, or a job's
  query: URLSearchParams;
}

const RUN_PAGES: readonly Page[] = ["operators", "io", "what-if", "sheet", "environment"];
// Kept where the page changes within one run.
const CARRIED = ["t", "at", "op"];

function number(text: string | undefined): number | null {
  return text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

export function parse(text: string): Address {
  const [path, query = ""] = text.split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  const address: Address = { page: "unknown", id: null, query: new URLSearchParams(query) };
  if (parts.length === 0) return { ...address, page: "runs" };
  const id = number(parts[1]);
  if (parts[0] === "sql" && parts.length === 1) return { ...address, page: "sql" };
  if (parts[0] === "compare" && parts.length === 1) return { ...address, page: "compare" };
  if (parts[0] === "compare" && parts.length === 2 && id !== null) {
    return { ...address, page: "compare", id };
  }
  if (parts[0] === "fleet" && parts.length === 1) return { ...address, page: "fleet" };
  if (parts[0] === "fleet" && parts.length === 2 && id !== null) {
    return { ...address, page: "fleet", id };
  }
  if (parts[0] === "run" && id !== null && parts.length <= 3) {
    const page = parts.length === 2 ? "overview" : RUN_PAGES.find((known) => known === parts[2]);
    if (page) return { ...address, page, id };
  }
  return address;
}

function format({ page, id, query }: Address): string {
  let path = "/";
  if (page === "overview") path = `/run/${id}`;
  else if (RUN_PAGES.includes(page)) path = `/run/${id}/${page}`;
  else if (page === "compare") path = id === null ? "/compare" : `/compare/${id}`;
  else if (page === "fleet") path = id === null ? "/fleet" : `/fleet/${id}`;
  else if (page === "sql") path = "/sql";
  // A comma and a slash may stand in a query as they are; addresses are read by people.
  const text = query.toString().replace(/%2C/g, ",").replace(/%2F/g, "/");
  return text ? `${path}?${text}` : path;
}

export function current(): Address {
  if (offline) return parse(location.hash.slice(1) || "/");
  return parse(location.pathname + location.search);
}

// The link to a page; within a run it keeps the range, the pinned time and the operator.
export function link(page: Page, id: number | null = null, query: Record<string, string> = {}) {
  const here = current();
  const kept = new URLSearchParams();
  const ofRuns = (one: Page) => one !== "compare" && one !== "fleet";
  if (id !== null && here.id === id && ofRuns(page) && ofRuns(here.page)) {
    for (const key of CARRIED) {
      const value = here.query.get(key);
      if (value !== null) kept.set(key, value);
    }
  }
  for (const [key, value] of Object.entries(query)) kept.set(key, value);
  const text = format({ page, id, query: kept });
  return offline ? `#${text}` : text;
}

// The attributes of a link to a page whose address follows the present range, time and operator.
export function linkTo(page: Page, id: number | null = null, query: Record<string, string> = {}) {
  return { href: link(page, id, query), "data-view": JSON.stringify([page, id, query]) };
}

function refreshLinks(): void {
  for (const anchor of document.querySelectorAll<HTMLAnchorElement>("a[data-view]")) {
    const view = JSON.parse(anchor.dataset.view ?? "[]") as Parameters<typeof link>;
    anchor.setAttribute("href", link(...view));
  }
}

// Changes the query of the present view without a new page; null takes a key away. The history
// has one entry for a view, however often it is zoomed.
export function replaceQuery(patch: Record<string, string | null>): void {
  const here = current();
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) here.query.delete(key);
    else here.query.set(key, value);
  }
  const text = format(here);
  const now = offline ? location.hash.slice(1) : location.pathname + location.search;
  if (text === now) return;
  history.replaceState(null, "", offline ? `#${text}` : text);
  refreshLinks();
}

const followers = new Set<() => void>();

// Calls `follow` when another page is to be shown.
export function onNavigate(follow: () => void): void {
  followers.add(follow);
}

function arrived(): void {
  for (const follow of followers) follow();
}

// Goes to a link made by link().
export function go(href: string): void {
  if (offline) {
    location.hash = href.slice(1);
    return;
  }
  history.pushState(null, "", href);
  arrived();
}

// Links within the pages are followed without loading them again; every other click is the
// browser's, as is one that asks for a new tab.
export function followLinks(): void {
  window.addEventListener(offline ? "hashchange" : "popstate", arrived);
  if (offline) return;
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const anchor = event.target instanceof Element ? event.target.closest("a") : null;
    const href = anchor?.getAttribute("href");
    if (!anchor || !href?.startsWith("/") || href.startsWith("//")) return;
    if (anchor.hasAttribute("download") || parse(href).page === "unknown") return;
    event.preventDefault();
    go(href);
  });
}
