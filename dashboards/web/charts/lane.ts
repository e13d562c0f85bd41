// A lane of the course: how one kind of row is painted over time, and what it says at one window or
// in the mean of the range.
import { s } from "../element";
import * as numbers from "../numbers";
import { meanInRange } from "../time";
import type { Course, Figure, QueueCourse, StageCourse, StepCourse } from "../types";
import type { Scale } from "./scale";

export interface Lane {
  key: string;
  label: string;
  short: string;
  height: number;
  minor: boolean; // a queue: smaller type
  limit: boolean;
  gapAfter: number;
  paint(plot: SVGElement, x: Scale, y: number): void;
  read(window: number | null): string;
}

type At = (index: number) => Figure | undefined;

// Windows that touch and whose values are known, as lists of indices: a gap is never joined.
function runs(course: Course, value: At): number[][] {
  const found: number[][] = [];
  let run: number[] = [];
  for (let i = 0; i < course.t.length; i++) {
    const here = value(i);
    const touches =
      run.length === 0 ||
      course.t[i] - (course.t[i - 1] + course.d[i - 1]) < 0.5 * course.d[i] + 1e-6;
    if (here === null || here === undefined || !touches) {
      if (run.length > 0) found.push(run);
      run = [];
    }
    if (here !== null && here !== undefined) run.push(i);
  }
  if (run.length > 0) found.push(run);
  return found;
}

// The outline of what lies between two values, 0 at the bottom and 1 at the top of the lane.
function area(course: Course, x: Scale, y: number, height: number, low: At, high: At): string {
  let path = "";
  for (const run of runs(course, high)) {
    let up = "";
    let down = "";
    for (const i of run) {
      const left = x(course.t[i]).toFixed(1);
      const right = x(course.t[i] + course.d[i]).toFixed(1);
      const clamped = (value: Figure | undefined) => Math.min(1, Math.max(0, value ?? 0));
      up += `${up ? "L" : "M"}${left} ${(y + height * (1 - clamped(high(i)))).toFixed(1)}H${right}`;
      down = `L${right} ${(y + height * (1 - clamped(low(i)))).toFixed(1)}H${left}` + down;
    }
    path += up + down + "Z";
  }
  return path;
}

function outline(course: Course, x: Scale, y: number, height: number, value: At): string {
  let path = "";
  for (const run of runs(course, value)) {
    run.forEach((i, at) => {
      const up = (y + height * (1 - Math.min(1, Math.max(0, value(i) ?? 0)))).toFixed(1);
      path += `${at ? "L" : "M"}${x(course.t[i]).toFixed(1)} ${up}H${x(course.t[i] + course.d[i]).toFixed(1)}`;
    });
  }
  return path;
}

const never: At = () => 0;

// Where the value is known; what was not recorded stays white.
function ground(course: Course, x: Scale, y: number, height: number, known: At) {
  const full: At = (i) => (known(i) === null || known(i) === undefined ? null : 1);
  return s("path", { d: area(course, x, y, height, never, full), class: "fill-wi" });
}

export function stageLane(
  course: Course,
  stage: StageCourse,
  height: number,
  limit: boolean,
): Lane {
  const sum = (keys: ("c" | "b" | "q" | "wo")[]): At => {
    return (i) => {
      let total = 0;
      for (const key of keys) total += stage[key]?.[i] ?? 0;
      return stage.busy[i] === null || stage.busy[i] === undefined ? null : total;
    };
  };
  const busy: At = (i) => stage.busy[i];
  const split = stage.c !== null && stage.b !== null && stage.q !== null;
  const layers: [string, At, At][] = split
    ? [
        ["fill-c", never, sum(["c"])],
        ["fill-b", sum(["c"]), sum(["c", "b"])],
        ["fill-q", sum(["c", "b"]), sum(["c", "b", "q"])],
        ["fill-wo", sum(["c", "b", "q"]), sum(["c", "b", "q", "wo"])],
      ]
    : [
        ["fill-busy", never, busy],
        ["fill-wo", busy, (i) => (busy(i) ?? 0) + (stage.wo[i] ?? 0)],
      ];
  return {
    key: stage.name,
    label: stage.name,
    short: stage.name,
    height,
    minor: false,
    limit,
    gapAfter: 5,
    paint(plot, x, y) {
      plot.append(ground(course, x, y, height, busy));
      for (const [tone, low, high] of layers) {
        plot.append(s("path", { d: area(course, x, y, height, low, high), class: tone }));
      }
    },
    read(window) {
      const value = window === null ? meanInRange(course.t, course.d, busy) : busy(window);
      return `busy ${numbers.percent(value === null ? null : Math.min(1, value ?? 0))}`;
    },
  };
}

export function queueLane(course: Course, queue: QueueCourse, height: number): Lane {
  const places = queue.capacity;
  return {
    key: queue.name,
    label: places ? `queue of ${places}` : "queue",
    short: "queue",
    height,
    minor: true,
    limit: false,
    gapAfter: 5,
    paint(plot, x, y) {
      const left = x(course.from);
      const width = Math.max(0, x(course.to) - left);
      plot.append(s("rect", { x: left, y, width, height, class: "frame" }));
      plot.append(
        s("path", {
          d: area(course, x, y, height, never, (i) => queue.fill[i]),
          class: "fill-water",
        }),
      );
    },
    read(window) {
      if (window !== null) {
        const fill = queue.fill[window];
        if (fill === null || fill === undefined) return numbers.NONE;
        return places
          ? `${numbers.count(Number((fill * places).toPrecision(2)))} of ${places}`
          : numbers.percent(fill);
      }
      const full = meanInRange(course.t, course.d, (i) => queue.full[i]);
      const empty = meanInRange(course.t, course.d, (i) => queue.empty[i]);
      if (full === null || empty === null) return numbers.NONE;
      return full > empty
        ? `full ${numbers.percent(full)} of the time`
        : `empty ${numbers.percent(empty)} of the time`;
    },
  };
}

let hatches = 0;

// The hatching of time that is lost. A drawing carries its own, so that it can be kept as a file.
function hatch(plot: SVGElement): string {
  const id = `hatch${++hatches}`;
  const attributes = {
    id,
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  };
  const pattern = s(
    "pattern",
    attributes,
    s("rect", { width: 6, height: 6, class: "fill-accent-soft" }),
    s("rect", { width: 2, height: 6, class: "fill-accent-mid" }),
  );
  plot.append(s("defs", null, pattern));
  return `url(#${id})`;
}

export function trainerLane(
  course: Course,
  step: StepCourse,
  height: number,
  limit: boolean,
): Lane {
  const whole = (i: number) => (step.wait[i] ?? 0) + (step.compute[i] ?? 0);
  // A window in which no step ended may be a wait or a part of one long step: it stays empty.
  const share: At = (i) => (whole(i) > 0 ? (step.wait[i] ?? 0) / whole(i) : null);
  return {
    key: "trainer",
    label: "trainer",
    short: "trainer",
    height,
    minor: false,
    limit,
    gapAfter: 14,
    paint(plot, x, y) {
      plot.append(
        s("path", {
          d: area(course, x, y, height, never, (i) => (share(i) === null ? null : 1)),
          fill: hatch(plot),
        }),
        s("path", {
          d: area(course, x, y, height, never, (i) =>
            share(i) === null ? null : 1 - (share(i) ?? 0),
          ),
          class: "fill-compute",
        }),
      );
    },
    read(window) {
      if (window !== null) return `waits ${numbers.percent(share(window))}`;
      const waits = meanInRange(course.t, course.d, (i) =>
        whole(i) > 0 ? (step.wait[i] ?? 0) / course.d[i] : null,
      );
      const all = meanInRange(course.t, course.d, (i) =>
        whole(i) > 0 ? whole(i) / course.d[i] : null,
      );
      return `waits ${numbers.percent(waits === null || !all ? null : waits / all)}`;
    },
  };
}

// The rate in rows, as a line above its area.
export function rateLane(course: Course, step: StepCourse, height: number): Lane {
  const perSecond: At = (i) => {
    const rows = step.rows[i];
    return rows === null || rows === undefined || !(course.d[i] > 0) ? null : rows / course.d[i];
  };
  const most = Math.max(...course.t.map((_, i) => perSecond(i) ?? 0), 0) * 1.05 || 1;
  const part: At = (i) => {
    const here = perSecond(i);
    return here === null || here === undefined ? null : here / most;
  };
  return {
    key: "rate",
    label: "rate",
    short: "rate",
    height,
    minor: false,
    limit: false,
    gapAfter: 8,
    paint(plot, x, y) {
      plot.append(
        s("path", { d: area(course, x, y, height, never, part), class: "fill-wi" }),
        s("path", { d: outline(course, x, y, height, part), class: "line-ink" }),
      );
      const left = x(course.from);
      plot.append(
        s("line", { x1: left, x2: x(course.to), y1: y + height, y2: y + height, class: "rule" }),
      );
    },
    read(window) {
      const value =
        window === null ? meanInRange(course.t, course.d, perSecond) : perSecond(window);
      return numbers.rate(value, "rows");
    },
  };
}

// How long steps took, by window: half of them at most, and 99 of 100 at most.
export function stepLane(course: Course, step: StepCourse, height: number): Lane | null {
  const { p50, p99 } = step;
  if (!p50 || !p99 || !p99.some((value) => value !== null)) return null;
  const most = Math.max(...p99.map((value) => value ?? 0)) * 1.05 || 1;
  const part =
    (values: Figure[]): At =>
    (i) => {
      const value = values[i];
      return value === null || value === undefined ? null : value / most;
    };
  return {
    key: "step time",
    label: "step p50, p99",
    short: "p50, p99",
    height,
    minor: true,
    limit: false,
    gapAfter: 5,
    paint(plot, x, y) {
      plot.append(
        s("path", { d: area(course, x, y, height, part(p50), part(p99)), class: "fill-wi" }),
        s("path", { d: outline(course, x, y, height, part(p99)), class: "line-soft" }),
        s("path", { d: outline(course, x, y, height, part(p50)), class: "line-ink" }),
      );
    },
    read(window) {
      if (window === null) return `up to ${numbers.seconds(most / 1.05)}`;
      return `${numbers.seconds(p50[window])}, ${numbers.seconds(p99[window])}`;
    },
  };
}
