// Parts of the pages that need no browser: numbers, addresses, and the course of a live run.
import { expect, test } from "@playwright/test";
import { join, resolve } from "node:path";
import { makeRun } from "./runs.mjs";

const bundle = resolve(process.env.HEADRACE_WEB_BUNDLE ?? "bundle");

// Modules are bundled by scripts/test_web.sh. Where there is no page, there is no data in it either.
async function load(name: string) {
  const world = globalThis as unknown as { document?: unknown };
  world.document ??= { getElementById: () => null };
  return import(join(bundle, `${name}.mjs`));
}

test("numbers read as the terminal's, with three digits and a unit", async () => {
  const n = await load("numbers");
  const cases: [string, string][] = [
    [n.seconds(0.00438), "4.38 ms"],
    [n.seconds(24.1), "24.1 s"],
    [n.seconds(0), "0 s"],
    [n.seconds(300), "5.00 min"],
    [n.seconds(86400), "24.0 h"],
    [n.seconds(3.2768e-5), "32.8 µs"],
    [n.bytes(55340000), "52.8 MiB"],
    [n.bytes(820), "820 B"],
    [n.bytes(1024), "1.00 KiB"],
    [n.byteRate(6.29e6), "6.29 MB/s"],
    [n.percent(0.4542), "45.4 %"],
    [n.percent(0), "0 %"],
    [n.percent(1), "100 %"],
    [n.percent(0.0003), "<0.1 %"],
    [n.percent(-0.02), "−2.0 %"],
    [n.wholePercent(0.003), "<1 %"],
    [n.change(0.8365), "+84 %"],
    [n.change(-0.047), "−4.7 %"],
    [n.change(0), "0 %"],
    [n.change(-0.0003), "0.0 %"],
    [n.change(36.9), "×37.9"],
    [n.rate(63740, "rows"), "63.7 k rows/s"],
    [n.count(4), "4"],
    [n.count(2976), "2976"],
    [n.count(1524000), "1.52 M"],
    [n.interval(209.4, 235.4), "[209, 235]"],
    [n.interval(null, 1), ""],
    [n.plural(1, "thread"), "1 thread"],
    [n.plural(3, "thread"), "3 threads"],
  ];
  for (const [got, expected] of cases) expect(got.replace(/\u00a0/g, " ")).toBe(expected);
});

test("what was not measured is a dash, never a number", async () => {
  const n = await load("numbers");
  for (const name of [
    "seconds",
    "bytes",
    "byteRate",
    "percent",
    "wholePercent",
    "change",
    "count",
    "rateNumber",
    "cores",
    "moment",
  ]) {
    for (const value of [null, undefined, NaN, Infinity])
      expect(n[name](value), `${name}(${value})`).toBe("–");
  }
});

test("any address is a page or unknown, and never an error", async () => {
  const { parse } = await load("address");
  const cases: [string, string, number | null][] = [
    ["/", "runs", null],
    ["", "runs", null],
    ["/run/7", "overview", 7],
    ["/run/7/", "overview", 7],
    ["/run/7/operators?op=a%2Fb", "operators", 7],
    ["/run/7/what-if", "what-if", 7],
    ["/run/7/environment", "environment", 7],
    ["/fleet", "fleet", null],
    ["/fleet/7", "fleet", 7],
    ["/fleet/x", "unknown", null],
    ["/compare", "compare", null],
    ["/compare/3", "compare", 3],
    ["/sql?q=SELECT%20'%3F'", "sql", null],
    ["/run/x", "unknown", null],
    ["/run/-1", "unknown", null],
    ["/run/7/nothing", "unknown", null],
    ["/run/7/operators/more", "unknown", null],
    ["//evil.example/run/7", "unknown", null],
    ["/%E0%A4%A", "unknown", null],
  ];
  for (const [text, page, id] of cases) {
    const found = parse(text);
    expect(found.page, text).toBe(page);
    if (page !== "unknown") expect(found.id, text).toBe(id);
  }
  expect(parse("/sql?q=SELECT%20'%3F'").query.get("q")).toBe("SELECT '?'");
});

type Windowed = Record<string, unknown>;

// Windows [from, to) of a course, as the server's event has them.
function part(course: any, from: number, to: number): any {
  const cut = (each: Windowed) =>
    Object.fromEntries(
      Object.entries(each).map(([key, value]) => [
        key,
        Array.isArray(value) ? value.slice(from, to) : value,
      ]),
    );
  return {
    ...course,
    t: course.t.slice(from, to),
    d: course.d.slice(from, to),
    stages: course.stages.map(cut),
    queues: course.queues.map(cut),
    steps: cut(course.steps),
  };
}

test("a live course in parts, some sent twice, is the course as a whole", async () => {
  const { extended } = await load("live");
  const seed = Number(process.env.HEADRACE_SEED ?? Math.floor(Math.random() * 1e9));
  console.log(`seed ${seed}: HEADRACE_SEED repeats it`);
  let state = seed || 1;
  const below = (n: number) => {
    state = (state * 48271) % 2147483647;
    return state % n;
  };
  for (let round = 0; round < 50; round++) {
    const { course } = makeRun(1 + below(1000), "whole", { windows: 60 }) as any;
    for (const stage of course.stages) delete stage.threads;
    let grown = part(course, 0, 10);
    for (let at = 10; at < 60; ) {
      const again = Math.max(0, at - below(4));
      const to = Math.min(60, at + 1 + below(8));
      grown = extended(grown, part(course, again, to));
      at = to;
    }
    expect(grown.t, `seed ${seed}`).toEqual(course.t);
    expect(grown.stages, `seed ${seed}`).toEqual(course.stages);
    expect(grown.steps, `seed ${seed}`).toEqual(course.steps);
    expect(grown.queues, `seed ${seed}`).toEqual(course.queues);
  }
});

test("a long window that reaches into the newest ones keeps its share of what it counted", async () => {
  const { extended } = await load("live");
  const course: any = {
    full: [0, 20],
    from: 0,
    to: 20,
    t: [0, 10],
    d: [10, 10],
    stages: [],
    queues: [],
    phases: [],
    marks: [],
    steps: {
      count: [100, 100],
      rows: [10, 10],
      wait: [1, 1],
      compute: [2, 2],
      p50: [1, 1],
      p99: [1, 1],
    },
  };
  const newest: any = {
    ...course,
    t: [15],
    d: [1],
    steps: { count: [7], rows: [1], wait: [0], compute: [0], p50: [1], p99: [1] },
  };
  const grown = extended(course, newest);
  expect(grown.t).toEqual([0, 10, 15]);
  expect(grown.d).toEqual([10, 5, 1]);
  expect(grown.steps.count).toEqual([100, 50, 7]);
});

test("what came since a time is added to an older course, and nothing twice", async () => {
  const { extended, since } = await load("live");
  const { course } = makeRun(3, "whole", { windows: 60 }) as any;
  for (const stage of course.stages) delete stage.threads;
  const old = { ...part(course, 0, 40), full: [0, course.t[39] + course.d[39]] };
  expect(extended(old, since(course, old.full[1])).t).toEqual(course.t);
  expect(extended(course, since(old, course.full[1])).t).toEqual(course.t);
  expect(extended(old, since(course, old.full[1])).steps).toEqual(course.steps);
});
