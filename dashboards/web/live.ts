// A run that is being recorded: the server tells what is new, and where the stream breaks, the
// browser asks again from the last version it saw.
import { offline } from "./api";
import type { Course, Figure, QueueCourse, StageCourse } from "./types";

export interface LiveHandlers {
  course(newest: Course): void;
  report(): void;
  state(state: string): void;
  connected(connected: boolean): void;
}

function parsed(event: Event): unknown {
  try {
    return JSON.parse((event as MessageEvent<string>).data);
  } catch {
    return null; // a damaged event; the next one brings the state again
  }
}

// Follows a run until `signal`, or until it is no longer recorded.
export function follow(id: number, signal: AbortSignal, handlers: LiveHandlers): void {
  if (offline || typeof EventSource === "undefined") return;
  const source = new EventSource(`/api/runs/${id}/events`);
  const close = () => source.close();
  signal.addEventListener("abort", close);
  source.addEventListener("open", () => handlers.connected(true));
  source.addEventListener("error", () => {
    if (!signal.aborted) handlers.connected(false);
  });
  source.addEventListener("course", (event) => {
    const newest = parsed(event) as Course | null;
    if (newest && Array.isArray(newest.t)) handlers.course(newest);
  });
  source.addEventListener("report", () => handlers.report());
  source.addEventListener("state", (event) => {
    const state = (parsed(event) as { state?: string } | null)?.state ?? "";
    if (state && state !== "recording") close();
    handlers.state(state);
  });
}

const nothing = (length: number): null[] => new Array<null>(length).fill(null);

// The first `kept` values, then the new ones; a series without new ones has unknown ones there.
function joined(
  old: readonly Figure[] | null | undefined,
  kept: number,
  added: readonly Figure[] | null | undefined,
  length: number,
) {
  const before = old ? old.slice(0, kept) : nothing(kept);
  while (before.length < kept) before.push(null);
  return [...before, ...(added && added.length === length ? added : nothing(length))];
}

function joinStage(
  old: StageCourse | undefined,
  kept: number,
  added: StageCourse | undefined,
  length: number,
): StageCourse {
  const either = (key: "c" | "b" | "q") => {
    const none = !old?.[key] && !added?.[key];
    return none ? null : joined(old?.[key], kept, added?.[key], length);
  };
  return {
    name: (old ?? added)?.name ?? "",
    busy: joined(old?.busy, kept, added?.busy, length),
    c: either("c"),
    b: either("b"),
    q: either("q"),
    wi: joined(old?.wi, kept, added?.wi, length),
    wo: joined(old?.wo, kept, added?.wo, length),
  };
}

function joinQueue(
  old: QueueCourse | undefined,
  kept: number,
  added: QueueCourse | undefined,
  length: number,
): QueueCourse {
  const any = (old ?? added) as QueueCourse;
  return {
    name: any.name,
    producer: any.producer,
    consumer: any.consumer,
    capacity: any.capacity,
    fill: joined(old?.fill, kept, added?.fill, length),
    full: joined(old?.full, kept, added?.full, length),
    empty: joined(old?.empty, kept, added?.empty, length),
  };
}

// A long window that reaches into the newest ones ends where they begin; of what it counted, it keeps
// its share.
function shortened(course: Course, index: number, end: number): Course {
  const share = (end - course.t[index]) / course.d[index];
  const part = (values: readonly Figure[]) =>
    values.map((value, i) => (i === index && value !== null ? value * share : value));
  const { steps } = course;
  return {
    ...course,
    d: course.d.map((length, i) => (i === index ? end - course.t[index] : length)),
    steps: steps && {
      ...steps,
      count: part(steps.count),
      rows: part(steps.rows),
      wait: part(steps.wait),
      compute: part(steps.compute),
    },
  };
}

function names(...lists: readonly { name: string }[][]): string[] {
  return [...new Set(lists.flat().map((each) => each.name))];
}

// The course with the newest windows in it. Windows that the server sends again, as the last one
// was still filling, take the place of those before.
export function extended(before: Course, newest: Course): Course {
  const length = newest.t.length;
  if (length === 0) return before;
  let course = before;
  let kept = course.t.length;
  while (kept > 0 && course.t[kept - 1] > newest.t[0] - 1e-6) kept--;
  if (kept > 0 && course.t[kept - 1] + course.d[kept - 1] > newest.t[0] + 1e-6) {
    course = shortened(course, kept - 1, newest.t[0]);
  }
  const find = <T extends { name: string }>(list: readonly T[], name: string) =>
    list.find((each) => each.name === name);
  const old = course.steps;
  const step = newest.steps;
  const steps = (key: "count" | "rows" | "wait" | "compute" | "p50" | "p99") =>
    joined(old?.[key], kept, step?.[key], length);
  const end = newest.t[length - 1] + newest.d[length - 1];
  return {
    full: [course.full[0], Math.max(course.full[1], end)],
    from: course.from,
    to: Math.max(course.to, end),
    t: [...course.t.slice(0, kept), ...newest.t],
    d: [...course.d.slice(0, kept), ...newest.d],
    stages: names(course.stages, newest.stages).map((name) =>
      joinStage(find(course.stages, name), kept, find(newest.stages, name), length),
    ),
    queues: names(course.queues, newest.queues).map((name) =>
      joinQueue(find(course.queues, name), kept, find(newest.queues, name), length),
    ),
    steps:
      old || step
        ? {
            count: steps("count"),
            rows: steps("rows"),
            wait: steps("wait"),
            compute: steps("compute"),
            p50: steps("p50"),
            p99: steps("p99"),
          }
        : null,
    phases: newest.phases.length > 0 ? newest.phases : course.phases,
    marks: newest.marks.length > 0 ? newest.marks : course.marks,
  };
}

// The windows of a course that begin at `at` or later: what a question for the whole, asked before they
// came, does not answer.
export function since(course: Course, at: number): Course {
  const first = course.t.findIndex((t) => t > at - 1e-6);
  const from = first < 0 ? course.t.length : first;
  const cut = <T extends object>(each: T): T =>
    Object.fromEntries(
      Object.entries(each).map(([key, value]) => [
        key,
        Array.isArray(value) ? value.slice(from) : value,
      ]),
    ) as T;
  return {
    ...course,
    t: course.t.slice(from),
    d: course.d.slice(from),
    stages: course.stages.map(cut),
    queues: course.queues.map(cut),
    steps: course.steps && cut(course.steps),
    phases: [],
    marks: [],
  };
}
