// A job of the preprocessing service: what limits it, where its workers' time goes, who lags, what
// happened.
import { get } from "../api";
import { link } from "../address";
import { card, emptyCard, plainCard } from "../cards/card";
import { machineCard } from "../cards/machine";
import { firstPageCard } from "../cards/verdict";
import { shareBars, shareLegend } from "../charts/shares";
import type { Share } from "../charts/shares";
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import { timeline } from "../time";
import type { CardText, Figure, FirstPage, Series } from "../types";
import type { Context, Shown } from "./context";

interface JobRow {
  job_id: number;
  job: string;
  state: string;
  started_realtime_ns: number;
  members_count: number;
}
interface Rank {
  rank: number;
  run_id: number;
  host: string;
  stall_ratio: number | null;
  rows_per_second: number;
  step_p99_ns: number | null;
  slow: boolean;
}
interface Worker {
  worker: number;
  run_id: number;
  host: string;
  state: string;
  rows_per_second: number;
  working_ratio: number;
  idle_ratio: number;
  no_room_ratio: number;
  absent_ratio: number;
  busiest_stage: string;
  utilisation_ratio: number;
  straggler: boolean;
}
interface Interval {
  start_ns: number;
  duration_ns: number;
  workers: Figure;
  wanted_count: Figure;
  lost_count: number;
  left_rows_count: Figure;
}
interface Decision {
  at_ns: number;
  from: string | null;
  to: string | null;
  reason: string;
}
interface JobEvent {
  at_ns: number;
  kind: string;
  splits_count: number | null;
  text: string;
}
interface Job {
  job_id: number;
  job: string;
  state: string;
  duration_ns: number;
  verdict: { decided: boolean };
  course: Interval[];
  ranks: Rank[];
  workers: Worker[];
  decisions: Decision[];
  events: JobEvent[];
}
interface FleetAnswer {
  jobs: JobRow[];
  job: Job | null;
  first: FirstPage | null;
  cards: Record<string, CardText>;
}

const TIME: readonly Share[] = [
  { text: "at work", fill: "fill-c" },
  { text: "no lease", fill: "fill-wi" },
  { text: "no room", fill: "fill-wo" },
  { text: "absent", fill: "fill-q" },
];
const WAITS: readonly Share[] = [
  { text: "waits for data", fill: "fill-accent" },
  { text: "computes", fill: "fill-compute" },
];

const at = (ns: number) => numbers.seconds(ns / 1e9);

function workersCard(job: Job, text: CardText): HTMLElement {
  const rows = job.workers.map((one) => ({
    name: `worker ${one.worker}`,
    href: link("overview", one.run_id),
    note: numbers.rate(one.rows_per_second, "rows"),
    strong: one.straggler,
    values: [one.working_ratio, one.idle_ratio, one.no_room_ratio, one.absent_ratio],
  }));
  return card({
    key: "fleet-workers",
    text,
    chart: shareBars(TIME, rows, `${text.question} ${text.answer ?? ""}`),
    legend: shareLegend(TIME),
    table: () => ({
      columns: [
        { title: "worker" },
        { title: "host" },
        { title: "state" },
        { title: "rows/s", format: numbers.rateNumber },
        { title: "at work", format: numbers.percent },
        { title: "no lease", format: numbers.percent },
        { title: "no room", format: numbers.percent },
        { title: "absent", format: numbers.percent },
        { title: "busiest stage" },
        { title: "its use", format: numbers.percent },
      ],
      rows: job.workers.map((one) => [
        one.worker,
        one.host,
        one.state,
        one.rows_per_second,
        one.working_ratio,
        one.idle_ratio,
        one.no_room_ratio,
        one.absent_ratio,
        one.busiest_stage,
        one.utilisation_ratio,
      ]),
    }),
  });
}

function ranksCard(job: Job, text: CardText): HTMLElement {
  const rows = job.ranks.map((one) => ({
    name: `rank ${one.rank}`,
    href: link("overview", one.run_id),
    note: numbers.rate(one.rows_per_second, "rows"),
    strong: one.slow,
    values: one.stall_ratio === null ? [null, null] : [one.stall_ratio, 1 - one.stall_ratio],
  }));
  return card({
    key: "fleet-ranks",
    text,
    chart: shareBars(WAITS, rows, `${text.question} ${text.answer ?? ""}`),
    legend: shareLegend(WAITS),
    table: () => ({
      columns: [
        { title: "rank" },
        { title: "host" },
        { title: "waits", format: numbers.percent },
        { title: "rows/s", format: numbers.rateNumber },
        { title: "step, 99 %", format: numbers.seconds },
      ],
      rows: job.ranks.map((one) => [
        one.rank,
        one.host,
        one.stall_ratio,
        one.rows_per_second,
        one.step_p99_ns === null ? null : one.step_p99_ns / 1e9,
      ]),
    }),
  });
}

function courseCard(job: Job, text: CardText, signal: AbortSignal): HTMLElement | null {
  if (text.empty) return emptyCard(text, "fleet-course");
  const series = (key: string, title: string, unit: string, value: (one: Interval) => Figure) => ({
    key,
    title,
    unit,
    of: null,
    t: job.course.map((one) => one.start_ns / 1e9),
    d: job.course.map((one) => one.duration_ns / 1e9),
    v: job.course.map(value),
  });
  const all: Series[] = [
    series("workers", "Workers that serve", "", (one) => one.workers),
    series("wanted", "Workers that are wanted", "", (one) => one.wanted_count),
    { ...series("left", "Rows left", "rows", (one) => one.left_rows_count), atEnd: true },
  ];
  return machineCard(all, text, signal, "fleet-course");
}

function happened(job: Job, text: CardText): HTMLElement {
  const list = [
    ...job.decisions.map((one) => ({
      ns: one.at_ns,
      what: one.to === null ? "workers stay" : `workers ${one.from ?? ""} to ${one.to}`,
      why: one.reason,
    })),
    ...job.events.map((one) => ({
      ns: one.at_ns,
      what: one.kind.replace(/_/g, " "),
      why: one.text,
    })),
  ].sort((a, b) => a.ns - b.ns);
  const columns = [{ title: "at" }, { title: "what" }, { title: "why" }];
  return card({
    key: "fleet-events",
    text,
    svg: false,
    chart: h(
      "dl",
      { class: "pairs" },
      list
        .slice(-12)
        .map((one) =>
          h("div", null, h("dt", null, at(one.ns)), h("dd", null, `${one.what}: ${one.why}`)),
        ),
    ),
    table: () => ({ columns, rows: list.map((one) => [at(one.ns), one.what, one.why]) }),
  });
}

function others(jobs: readonly JobRow[], shown: number): Child {
  const list = jobs.filter((one) => one.job_id !== shown).slice(0, 20);
  if (list.length === 0) return null;
  return plainCard(
    "Which other jobs are in this file?",
    numbers.plural(list.length, "other job"),
    h(
      "ul",
      { class: "plain" },
      list.map((one) =>
        h(
          "li",
          null,
          h("a", { href: link("fleet", one.job_id) }, one.job),
          ` ${one.state}, ${numbers.plural(one.members_count, "member")}, ${numbers.moment(one.started_realtime_ns / 1e9)}`,
        ),
      ),
    ),
  );
}

export async function fleet({ address, signal }: Context): Promise<Shown> {
  const path = address.id === null ? "/api/fleet" : `/api/fleet/${address.id}`;
  const { jobs, job, first, cards } = await get<FleetAnswer>(path, signal);
  if (job === null || first === null) {
    return {
      title: "Fleet · headrace",
      body: [h("h1", { class: "vh" }, "Fleet"), emptyCard(cards.none, "fleet")],
    };
  }
  timeline.begin([0, job.duration_ns / 1e9]);
  return {
    title: `Job ${job.job} · headrace`,
    body: [
      firstPageCard(first, null),
      job.workers.length > 0 ? workersCard(job, cards.workers) : null,
      job.ranks.length > 0 ? ranksCard(job, cards.ranks) : null,
      courseCard(job, cards.course, signal),
      happened(job, cards.events),
      others(jobs, job.job_id),
    ],
  };
}
