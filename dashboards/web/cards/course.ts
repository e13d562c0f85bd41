// When it happens: the lanes of a run, with the range and the cursor that all charts share. A range
// is asked of the server again, so that a zoom shows more and not only larger.
import { get, offline } from "../api";
import { cursorSentence, lanes } from "../charts/lanes";
import type { Lanes } from "../charts/lanes";
import { stateLegend } from "../charts/states";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import { timeline } from "../time";
import type { CardText, Course } from "../types";
import { card } from "./card";
import type { Table } from "./table";

const WINDOWS = 300; // asked of the server
const HINT = "Point at a time to read it. Click to pin it. Drag to see a part of the run.";
const WAIT = 150; // milliseconds after the last change of the range

export const coursePath = (id: number) => `/api/runs/${id}/course?px=${WINDOWS}`;

export interface CourseCard {
  element: HTMLElement;
  // A live run has gone on.
  show(course: Course): void;
}

function toolbar(): HTMLElement {
  const button = (text: string, name: string, run: () => void) =>
    h(
      "button",
      {
        class: "btn",
        type: "button",
        "aria-label": name,
        "data-focus": `time ${name}`,
        click: run,
      },
      text,
    );
  const whole = button("Whole run", "Show the whole run", () => timeline.showAll());
  return h(
    "div",
    { class: "toolbar", role: "group", "aria-label": "Range of time" },
    button("‹", "Earlier", () => timeline.pan(-0.5)),
    button("›", "Later", () => timeline.pan(0.5)),
    button("+", "Nearer", () => timeline.scale(0.5)),
    button("−", "Farther", () => timeline.scale(2)),
    whole,
  );
}

// Arrow keys move the pinned cursor by a window, with Shift by ten.
function followKeys(box: HTMLElement, course: () => Course): void {
  box.addEventListener("keydown", (event) => {
    const { t, d } = course();
    const step = (d[Math.floor(d.length / 2)] ?? 0.1) * (event.shiftKey ? 10 : 1);
    const at = timeline.at ?? (timeline.from + timeline.to) / 2;
    const first = t[0] ?? 0;
    const moved = (by: number) =>
      timeline.pin(Math.min(timeline.to, Math.max(Math.max(first, timeline.from), at + by)));
    if (event.key === "ArrowRight") moved(step);
    else if (event.key === "ArrowLeft") moved(-step);
    else if (event.key === "Escape") timeline.pin(null);
    else if (event.key === "+" || event.key === "=") timeline.scale(0.5);
    else if (event.key === "-") timeline.scale(2);
    else if (event.key === "0") timeline.showAll();
    else return;
    event.preventDefault();
  });
}

function table(course: Course): Table {
  const share = { format: numbers.percent };
  const step = course.steps;
  const extra = step
    ? [
        { title: "steps", format: numbers.count },
        { title: "rows", format: numbers.count },
        { title: "trainer waits", format: numbers.seconds },
        { title: "computes", format: numbers.seconds },
      ]
    : [];
  return {
    columns: [
      { title: "from", format: numbers.seconds },
      { title: "length", format: numbers.seconds },
      ...course.stages.map((stage) => ({ title: `${stage.name} busy`, ...share })),
      ...course.queues.map((queue) => ({ title: `${queue.name} fill`, ...share })),
      ...extra,
    ],
    rows: course.t.map((t, i) => [
      t,
      course.d[i],
      ...course.stages.map((stage) => stage.busy[i] ?? null),
      ...course.queues.map((queue) => queue.fill[i] ?? null),
      ...(step
        ? [
            step.count[i] ?? null,
            step.rows[i] ?? null,
            step.wait[i] ?? null,
            step.compute[i] ?? null,
          ]
        : []),
    ]),
  };
}

// The range at the server's finest, a moment after it last changed.
function finer(id: number, signal: AbortSignal, show: (course: Course | null) => void) {
  let timer = 0;
  let asked: AbortController | null = null;
  return () => {
    window.clearTimeout(timer);
    asked?.abort();
    if (offline || timeline.whole) {
      show(null);
      return;
    }
    asked = new AbortController();
    const own = asked;
    signal.addEventListener("abort", () => own.abort());
    const range = `from=${timeline.from.toFixed(3)}&to=${timeline.to.toFixed(3)}`;
    timer = window.setTimeout(() => {
      get<Course>(`${coursePath(id)}&${range}`, own.signal).then(
        (course) => {
          if (!own.signal.aborted) show(course);
        },
        () => undefined, // the coarse windows stay
      );
    }, WAIT);
  };
}

export function courseCard(
  id: number,
  whole: Course,
  limits: ReadonlySet<string>,
  text: CardText,
  signal: AbortSignal,
): CourseCard {
  let full = whole;
  let seen = whole;
  let drawn: Lanes | null = null;
  const chart = new Fitted((width) => {
    drawn = lanes(width, seen, limits, text.answer ?? "");
    return drawn.svg;
  });
  const readout = h("p", { class: "readout" });
  const keys = h(
    "div",
    {
      class: "keys",
      tabindex: 0,
      role: "group",
      "aria-label":
        "Course of the run. Arrow keys move the cursor, plus and minus zoom, 0 shows the whole run.",
      "data-focus": "course",
    },
    chart.element,
  );
  const say = () => {
    readout.textContent = cursorSentence(seen, limits) || HINT;
  };
  followKeys(keys, () => seen);
  const zoom = finer(id, signal, (course) => {
    seen = course ?? full;
    chart.redraw();
  });
  timeline.subscribe((rangeChanged) => {
    if (rangeChanged) {
      chart.redraw();
      zoom();
    } else {
      drawn?.showCursor();
    }
    say();
  }, signal);
  if (!timeline.whole) zoom();
  say();
  const split = whole.stages.some((stage) => stage.c !== null);
  return {
    element: card({
      key: "course",
      text,
      chart: keys,
      legend: h("div", { class: "legends" }, readout, stateLegend(split, whole.steps !== null)),
      controls: toolbar(),
      table: () => table(seen),
    }),
    show(course) {
      full = course;
      if (timeline.whole) {
        seen = course;
        chart.redraw();
      }
    },
  };
}
