// A server with the API of `headrace serve` and runs that are made up (runs.mjs): for tests of what
// no recording can be asked to hold, and to look at the pages while they are written.
//
//   node mock.mjs BUNDLE [--port N] [--empty] [--data FOLDER]
//
// BUNDLE: a folder with index.html, app.js and style.css. --data: also the runs of a folder of JSON
// files of the pages' first prototype.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { NO_FLEET, makeFleet } from "./fleet_runs.mjs";
import {
  NO_IO_LATENCY,
  NO_IO_LAYOUT,
  makeIoLatency,
  makeIoLayout,
  makeSheet,
  makeStacksDiff,
  makeTrends,
} from "./io_runs.mjs";
import {
  makeBlind,
  makeComparison,
  makeGappy,
  makeHostile,
  makeOutside,
  makeRun,
  makeUnfinished,
  whatIf,
} from "./runs.mjs";

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const TYPES = { "/app.js": "text/javascript", "/style.css": "text/css" };
const NOT_FOUND = {
  what: "There is no such run.",
  where: "run 999",
  fix: "headrace list shows the runs of this database.",
};

export const IDS = {
  plain: 1,
  outside: 2,
  blind: 3,
  hostile: 4,
  many: 5,
  gappy: 6,
  branched: 7,
  level1: 8,
  live: 9,
  bare: 10,
  long: 11,
};

// What the pages of files and of the sheet show of each run.
function ioOf(id) {
  if ([IDS.outside, IDS.blind, IDS.bare].includes(id))
    return { io_layout: () => NO_IO_LAYOUT, io_latency: NO_IO_LATENCY };
  const hostile = id === IDS.hostile ? "<img src=x onerror=hacked=1>" : null;
  const size = id === IDS.many ? { keys: 6000, stripes: 400 } : {};
  return {
    io_layout: (stripe) => makeIoLayout({ ...size, ...(hostile ? { name: hostile } : {}), stripe }),
    io_latency: makeIoLatency(),
    characterization: makeSheet(hostile ?? undefined),
  };
}

const NO_SHEET = {
  card: {
    question: "What is characteristic of this workload?",
    empty: "The sheet needs a program with operators: this one is not instrumented.",
    command: "headrace characterize rm1 --quick",
    read: [],
  },
};

function makeStore(empty) {
  if (empty) return new Map();
  const live = makeRun(IDS.live, "being recorded", { state: "recording", windows: 40, seconds: 8 });
  const bare = {
    report: {
      schema: "headrace.report/1",
      run: {
        id: IDS.bare,
        name: "",
        state: "recording",
        duration_seconds: 0,
        started_seconds: 1795400000,
      },
    },
  };
  const runs = [
    makeRun(IDS.plain, "demo"),
    makeOutside(IDS.outside, "seen from outside"),
    makeBlind(IDS.blind, "no probe"),
    makeHostile(IDS.hostile),
    makeRun(IDS.many, "many operators", { stages: 12, operators: 84 }),
    makeGappy(IDS.gappy),
    makeRun(IDS.branched, "two sources", { stages: 5, branched: true }),
    makeRun(IDS.level1, "level 1", { split: false }),
    live,
    bare,
    makeRun(IDS.long, "a day", { seconds: 86400, windows: 300 }),
  ];
  const ids = Object.values(IDS);
  return new Map(
    runs.map((run, i) => [ids[i], { characterization: NO_SHEET, ...run, ...ioOf(ids[i]) }]),
  );
}

function listed(store, query) {
  const q = (query.get("q") ?? "").toLowerCase();
  const rows = [...store].map(([id, { report }]) => ({
    id,
    name: report.run.name,
    tags: id === IDS.plain ? "nightly baseline" : "",
    state: report.run.state,
    kind: "pipeline",
    program: report.run.program ?? "",
    pipeline: report.run.pipeline ?? "",
    settings: "",
    started_seconds: report.run.started_seconds,
    duration_seconds: report.run.duration_seconds,
    rows_count: 1524000,
    rows_per_second: report.verdict?.observed?.rows_per_second ?? null,
    stall_ratio: report.verdict?.stall_ratio ?? null,
    comparison: null,
  }));
  for (let i = 0; i < 6 && store.size > 0; i++)
    rows.push({
      ...rows[0],
      id: 30 + i,
      name: `pair ${i}`,
      tags: "",
      comparison: 1,
      comparison_verdict: "faster",
    });
  return rows
    .filter((row) => `${row.name} ${row.tags} ${row.state}`.toLowerCase().includes(q))
    .sort((a, b) => b.id - a.id);
}

// The course of a live run goes on while the connection lasts; a client that comes again with the
// last id it saw is sent what follows.
function stream(request, response, run) {
  const { course } = run;
  let version = Number(request.headers["last-event-id"] ?? 0);
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  response.write("retry: 300\n\n");
  const send = (event, data) =>
    response.write(`id: ${version}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const timer = setInterval(() => {
    version++;
    const at = 8 + version * 0.2;
    const one = (list) => list.slice(0, 1);
    const part = (each, keys) =>
      Object.fromEntries(
        Object.entries(each).map(([key, value]) => [
          key,
          keys.includes(key) && value ? one(value) : value,
        ]),
      );
    send("course", {
      ...course,
      t: [at],
      d: [0.2],
      stages: course.stages.map((stage) =>
        part(stage, ["busy", "c", "b", "q", "wi", "wo", "threads"]),
      ),
      queues: course.queues.map((queue) => part(queue, ["fill", "full", "empty"])),
      steps: part(course.steps, Object.keys(course.steps)),
    });
    if (version % 10 === 0) send("report", { version });
    if (version % 12 === 0) response.end(); // a connection that breaks; the browser comes again
  }, 200);
  request.on("close", () => clearInterval(timer));
}

const fail = (status, error) => ({ status, body: { error } });

function sqlAnswer(sql) {
  if (/drop|delete|insert|update/i.test(sql)) {
    return fail(400, {
      what: "This statement would change the database.",
      where: sql.slice(0, 60),
      fix: "Only SELECT is allowed.",
    });
  }
  const count = /many/.test(sql) ? 1000 : 3;
  return {
    status: 200,
    body: {
      columns: ["run_id", "name", "=busy_ns"],
      rows: Array.from({ length: count }, (_, i) => [
        i,
        i % 2 ? "<b>name</b>" : "=1+1",
        i === 1 ? null : i * 1.5e9,
      ]),
      truncated: count === 1000,
      elapsed_seconds: 0.0123,
    },
  };
}

// Job 2 is the newest; job 3 has the name of one that is no friend.
function fleetAnswer(store, id) {
  if (!store.size) return { status: 200, body: NO_FLEET };
  if (id === 3) return { status: 200, body: makeFleet(2, "<img src=x onerror=hacked=1>") };
  return id === 1 || id === 2
    ? { status: 200, body: makeFleet(id) }
    : fail(404, { what: "There is no such job.", where: "", fix: "The newest one is at /fleet." });
}

function answer(store, method, path, query, body) {
  if (path === "/api/store")
    return {
      status: 200,
      body: {
        schema: "headrace.store/1",
        headrace_version: "0.1.0",
        database: "demo.db",
        latest: store.size ? IDS.plain : null,
        runs_count: store.size,
      },
    };
  if (path === "/api/runs")
    return {
      status: 200,
      body: { schema: "headrace.runs/1", runs: listed(store, query), next: null },
    };
  if (path === "/api/trends")
    return { status: 200, body: store.size ? makeTrends(IDS.plain) : { trends: [] } };
  const job = /^\/api\/fleet(?:\/(\d+))?$/.exec(path);
  if (job) return fleetAnswer(store, Number(job[1] ?? 2));
  if (path === "/api/sql") return sqlAnswer(body?.sql ?? "");
  if (path === "/api/comparisons") {
    return {
      status: 200,
      body: {
        comparisons: store.size
          ? [
              {
                id: 1,
                title: "decode",
                a: "decode.parallelism=1",
                b: "decode.parallelism=2",
                pairs: 12,
                verdict: "faster",
                started_seconds: 1795400000,
              },
            ]
          : [],
      },
    };
  }
  if (path === "/api/comparisons/1" && store.size)
    return { status: 200, body: makeComparison(1, 30, 50) };
  if (path === "/api/comparisons/2" && store.size) return { status: 200, body: makeUnfinished(2) };
  const match = /^\/api\/runs\/(\d+)\/(.+)$/.exec(path);
  const run = match ? store.get(Number(match[1])) : undefined;
  if (!match || !run) return fail(404, NOT_FOUND);
  const [, , what] = match;
  if (what === "whatif")
    return method === "POST"
      ? { status: 200, body: whatIf(run, body ?? {}) }
      : fail(405, { what: "POST only", where: path, fix: "" });
  if (what === "stacks") {
    const kind = query.get("kind") ?? "cpu";
    return {
      status: 200,
      body: run.stacks?.[kind] ?? { kind, kinds: [], total_seconds: 0, frames: [], roots: [] },
    };
  }
  if (what === "io_layout")
    return { status: 200, body: run.io_layout(Number(query.get("stripe") ?? 0)) };
  if (what === "stacks_diff") {
    const kind = query.get("kind") ?? "cpu";
    const other = Number(query.get("with"));
    return store.has(other) && run.stacks?.[kind]
      ? { status: 200, body: makeStacksDiff(run.stacks[kind], other, kind) }
      : fail(400, { what: `there is no run ${other}`, where: "with", fix: "name another" });
  }
  if (what === "questions") return { status: 200, body: { questions: run.report.questions ?? [] } };
  return run[what]
    ? { status: 200, body: run[what] }
    : fail(404, { what: "Nothing of that was recorded.", where: path, fix: "" });
}

function readBody(request) {
  return new Promise((resolve) => {
    let text = "";
    request.on("data", (chunk) => (text += chunk));
    request.on("end", () => {
      try {
        resolve(JSON.parse(text));
      } catch {
        resolve(null);
      }
    });
  });
}

// Serves a bundle; resolves with the server and its address.
export async function serve(bundle, { port = 0, empty = false, more = new Map() } = {}) {
  const store = makeStore(empty);
  for (const [id, run] of more) store.set(id, run);
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const headers = {
      "Content-Security-Policy": CSP,
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": "no-store",
    };
    const events = /^\/api\/runs\/(\d+)\/events$/.exec(url.pathname);
    if (events && store.has(Number(events[1])) && store.get(Number(events[1])).course)
      return stream(request, response, store.get(Number(events[1])));
    if (url.pathname.startsWith("/api/")) {
      const body = request.method === "POST" ? await readBody(request) : null;
      const found = answer(store, request.method, url.pathname, url.searchParams, body);
      response.writeHead(found.status, { ...headers, "Content-Type": "application/json" });
      return response.end(JSON.stringify(found.body));
    }
    const type = TYPES[url.pathname];
    const file = type ? url.pathname.slice(1) : "index.html";
    response.writeHead(200, { ...headers, "Content-Type": type ?? "text/html; charset=utf-8" });
    response.end(readFileSync(join(bundle, file)));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { server, address: `http://127.0.0.1:${server.address().port}` };
}

if (process.argv[1]?.endsWith("mock.mjs")) {
  const option = (name) => {
    const at = process.argv.indexOf(name);
    return at > 0 ? process.argv[at + 1] : undefined;
  };
  const folder = option("--data");
  const more = folder ? (await import("./prototype.mjs")).readPrototype(folder) : new Map();
  const { address } = await serve(process.argv[2], {
    port: Number(option("--port") ?? 7070),
    empty: process.argv.includes("--empty"),
    more,
  });
  console.log(address);
}
