// Lanes in the order of the pipeline: what each stage's threads did, how full the queue behind it
// was, at the end the trainer. Read downward, starvation is seen to travel down and blocking up.
import { drawing, s } from "../element";
import { timeline, windowAt } from "../time";
import type { Course } from "../types";
import type { Lane } from "./lane";
import { queueLane, rateLane, stageLane, stepLane, trainerLane } from "./lane";
import { followPointer } from "./pointer";
import { cut, linear, timeLabel, timeTicks } from "./scale";
import type { Scale } from "./scale";

const TOP = 24;
const MARKS = 14; // for the words of marks, where there are some
const AXIS = 24;

export interface Lanes {
  svg: SVGSVGElement;
  // Puts the cursor where the timeline has it, and the values beside the lanes.
  showCursor(): void;
}

export function lanesOf(course: Course, limits: ReadonlySet<string>): Lane[] {
  const many = course.stages.length > 9;
  const list: Lane[] = [];
  for (const stage of course.stages) {
    list.push(stageLane(course, stage, many ? 20 : 34, limits.has(stage.name)));
    for (const queue of course.queues.filter((each) => each.producer === stage.name)) {
      list.push(queueLane(course, queue, many ? 10 : 20));
    }
  }
  const step = course.steps;
  if (step && step.count.length > 0) {
    list.push(trainerLane(course, step, many ? 20 : 34, limits.has("trainer")));
    const times = stepLane(course, step, 22);
    if (times) list.push(times);
    list.push(rateLane(course, step, 46));
  }
  return list;
}

function paintPhases(
  svg: SVGElement,
  plot: SVGElement,
  course: Course,
  x: Scale,
  top: number,
  height: number,
) {
  const [left, right] = [x(timeline.from), x(timeline.to)];
  let free = -Infinity;
  for (const phase of course.phases) {
    const begin = Math.max(left, x(phase.from));
    const end = Math.min(right, x(phase.to));
    if (end <= left || begin >= right) continue;
    if (phase.phase !== "steady") {
      plot.append(
        s("rect", {
          x: begin,
          y: top,
          width: end - begin,
          height: height - top - AXIS,
          class: "fill-page",
        }),
      );
    }
    const middle = (begin + end) / 2;
    const room = phase.phase.length * 6.6;
    if (end - begin > room + 4 && middle - room / 2 > free) {
      svg.append(s("text", { x: middle, y: 12, class: "middle dim" }, phase.phase));
      free = middle + room / 2 + 6;
    }
    if (phase.from > timeline.from) {
      plot.append(
        s("line", {
          x1: x(phase.from),
          x2: x(phase.from),
          y1: 16,
          y2: height - AXIS,
          class: "rule",
        }),
      );
    }
  }
}

function paintMarks(svg: SVGElement, course: Course, x: Scale, height: number, right: number) {
  let free = -Infinity;
  for (const mark of course.marks) {
    if (mark.at < timeline.from || mark.at > timeline.to) continue;
    const at = x(mark.at);
    svg.append(s("line", { x1: at, x2: at, y1: TOP + 2, y2: height - AXIS, class: "mark dashed" }));
    const text = cut(mark.text, Math.min(220, right - at - 6));
    if (text && at > free) {
      svg.append(s("text", { x: at + 4, y: TOP + 9, class: "strong small" }, text));
      free = at + text.length * 6.4 + 10;
    }
  }
}

function paintAxis(svg: SVGElement, x: Scale, height: number, narrow: boolean) {
  const span = timeline.to - timeline.from;
  for (const tick of timeTicks(timeline.from, timeline.to, narrow ? 3 : 8)) {
    svg.append(
      s("text", { x: x(tick), y: height - 6, class: "middle dim" }, timeLabel(tick, span)),
    );
  }
}

function paintLabel(svg: SVGElement, lane: Lane, y: number, left: number, narrow: boolean) {
  const tone = lane.minor ? "end dim small" : lane.limit ? "end strong accent" : "end name";
  const text = cut(narrow ? lane.short : lane.label, left - 10);
  svg.append(s("text", { x: left - 10, y: y + lane.height / 2 + 4, class: tone }, text));
}

let clips = 0;

// Phases stand above the lanes, marks between them and the lanes.
function topOf(course: Course): number {
  const marked = course.marks.some((mark) => mark.at >= timeline.from && mark.at <= timeline.to);
  return marked ? TOP + MARKS : TOP;
}

export function lanes(
  width: number,
  course: Course,
  limits: ReadonlySet<string>,
  label: string,
): Lanes {
  const narrow = width < 560;
  const left = narrow ? 74 : 112;
  const right = width - (narrow ? 8 : 166);
  const list = lanesOf(course, limits);
  const top = topOf(course);
  const height = top + list.reduce((sum, lane) => sum + lane.height + lane.gapAfter, 0) + AXIS;
  const x = linear(timeline.from, timeline.to, left, right);
  const svg = drawing(width, height, label, "lanes");
  const clip = `clip${++clips}`;
  const plot = s("g", { "clip-path": `url(#${clip})` });
  svg.append(
    s(
      "defs",
      null,
      s("clipPath", { id: clip }, s("rect", { x: left, y: 0, width: right - left, height })),
    ),
    plot,
  );
  paintPhases(svg, plot, course, x, top, height);
  const readouts: { node: SVGTextElement; lane: Lane }[] = [];
  let y = top;
  for (const lane of list) {
    lane.paint(plot, x, y);
    if (lane.limit) {
      const frame = {
        x: left - 1,
        y: y - 1,
        width: right - left + 2,
        height: lane.height + 2,
        rx: 2,
      };
      svg.append(s("rect", { ...frame, class: "limit-frame" }));
    }
    paintLabel(svg, lane, y, left, narrow);
    if (!narrow) {
      const tone = lane.minor ? "dim small" : "small";
      const node = s(
        "text",
        { x: right + 12, y: y + lane.height / 2 + 4, class: tone },
        lane.read(null),
      );
      svg.append(node);
      readouts.push({ node, lane });
    }
    y += lane.height + lane.gapAfter;
  }
  paintMarks(svg, course, x, height, right);
  paintAxis(svg, x, height, narrow);
  const cursor = s("line", { y1: top, y2: height - AXIS, class: "cursor hidden" });
  svg.append(cursor);
  followPointer(svg, { left, right, top, bottom: height - AXIS });
  const showCursor = () => {
    const at = timeline.at;
    const visible = at !== null && at >= timeline.from && at <= timeline.to;
    const window = visible ? windowAt(course.t, course.d, at) : -1;
    cursor.setAttribute("class", visible ? "cursor" : "cursor hidden");
    if (visible) {
      cursor.setAttribute("x1", String(x(at)));
      cursor.setAttribute("x2", String(x(at)));
    }
    for (const { node, lane } of readouts) node.textContent = lane.read(window < 0 ? null : window);
  };
  showCursor();
  return { svg, showCursor };
}

// What all lanes say at the cursor, for the line under the chart.
export function cursorSentence(course: Course, limits: ReadonlySet<string>): string {
  if (timeline.at === null) return "";
  const window = windowAt(course.t, course.d, timeline.at);
  const time = timeLabel(timeline.at, timeline.to - timeline.from);
  if (window < 0) return `At ${time} nothing was recorded.`;
  const said = lanesOf(course, limits).map((lane) => `${lane.label} ${lane.read(window)}`);
  return `At ${time}: ${said.join(", ")}.`;
}
