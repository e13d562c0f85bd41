// The pipeline as it is built: stages with what their threads did, queues with how full they were,
// and the trainer. A pipeline that is one chain wraps like text; one with branches has a column for
// each distance to the trainer.
import { linkTo } from "../address";
import { stateBar, stateLegend } from "../charts/states";
import type { Child } from "../element";
import { drawing, h, s } from "../element";
import * as numbers from "../numbers";
import type {
  CardText,
  Operator,
  Pipeline,
  QueueInPipeline,
  Report,
  StageInPipeline,
  Trainer,
} from "../types";
import { card } from "./card";
import type { Table } from "./table";

const MOST_OPERATORS = 3;

function queueGlyph(queue: QueueInPipeline) {
  const width = 56;
  const fill = Math.min(1, Math.max(0, queue.fill ?? 0));
  const svg = drawing(
    width + 20,
    26,
    `${queue.name}: on average ${numbers.percent(queue.fill)} full`,
    "queueglyph",
  );
  svg.append(
    s("rect", { x: 3, y: 4, width, height: 17, rx: 3, class: "frame" }),
    s("rect", {
      x: 4 + (width - 2) * (1 - fill),
      y: 5,
      width: (width - 2) * fill,
      height: 15,
      rx: 2,
      class: "fill-water",
    }),
  );
  const places = Math.min(queue.capacity ?? 1, 8);
  for (let i = 1; i < places; i++) {
    const x = 3 + (width * i) / places;
    svg.append(s("line", { x1: x, x2: x, y1: 4, y2: 21, class: "frame" }));
  }
  svg.append(s("path", { d: `M${width + 7} 8.5l5 4l-5 4`, class: "line-soft" }));
  return svg;
}

function queueElement(queue: QueueInPipeline): HTMLElement {
  const full = (queue.full ?? 0) > (queue.empty ?? 0);
  const share = full ? queue.full : queue.empty;
  return h(
    "div",
    { class: "queue" },
    queueGlyph(queue),
    share === null || share === undefined
      ? h("span", null, "not measured")
      : h(
          "span",
          null,
          full ? "full " : "empty ",
          h("b", null, numbers.wholePercent(share)),
          " of the time",
        ),
  );
}

function arrow(): HTMLElement {
  const svg = drawing(76, 26, null, "queueglyph");
  svg.append(s("path", { d: "M8 12.5h54m-5 -4l5 4l-5 4", class: "line-soft" }));
  return h("div", { class: "queue" }, svg);
}

function busiest(report: Report, stage: string): Operator[] {
  return (report.operators ?? [])
    .filter((each) => each.stage === stage && (each.busy_ratio ?? 0) > 0.005)
    .sort((a, b) => (b.busy_ratio ?? 0) - (a.busy_ratio ?? 0))
    .slice(0, MOST_OPERATORS);
}

// A long name goes on in the next line, after a mark within it.
const breakable = (name: string): Child[] =>
  name.split(/(?<=[_.])/).flatMap((part, i) => (i === 0 ? [part] : [h("wbr"), part]));

function stageElement(report: Report, stage: StageInPipeline): HTMLElement {
  const operators = busiest(report, stage.name);
  const threads = stage.threads === null ? "" : `×${numbers.count(stage.threads)}`;
  const query: Record<string, string> = operators.length ? { op: operators[0].operator } : {};
  return h(
    "a",
    { class: stage.limit ? "stage limit" : "stage", ...linkTo("operators", report.run.id, query) },
    stage.limit ? h("span", { class: "tag" }, "limits") : null,
    h("span", { class: "name" }, h("span", null, stage.name), h("span", { class: "u" }, threads)),
    stateBar(stage, stage.name),
    h("span", { class: "line" }, `busy ${numbers.wholePercent(stage.busy)}`),
    stage.bound_batches_per_second === null
      ? null
      : h(
          "span",
          { class: "line" },
          `allows ${numbers.rateNumber(stage.bound_batches_per_second)}/s`,
        ),
    h(
      "span",
      { class: "operators" },
      operators.map((each) =>
        h(
          "span",
          null,
          h("span", { title: each.operator }, breakable(each.operator)),
          h("span", null, numbers.wholePercent(each.busy_ratio)),
        ),
      ),
    ),
  );
}

function trainerElement(trainer: Trainer): HTMLElement {
  const wait = Math.min(1, Math.max(0, trainer.wait_ratio ?? 0));
  const row = (name: string, rate: number | null) =>
    rate === null
      ? null
      : h("span", null, h("span", null, name), h("span", null, `${numbers.rateNumber(rate)}/s`));
  return h(
    "div",
    { class: trainer.limit ? "stage limit" : "stage" },
    trainer.limit ? h("span", { class: "tag" }, "limits") : null,
    h("span", { class: "name" }, "trainer"),
    trainer.wait_ratio === null
      ? null
      : h(
          "span",
          { class: "statebar", "aria-hidden": "true" },
          h("i", { class: "fill-compute", style: { width: `${(1 - wait) * 100}%` } }),
          h("i", { class: "fill-wait", style: { width: `${wait * 100}%` } }),
        ),
    h("span", { class: "line" }, `waits ${numbers.wholePercent(trainer.wait_ratio)}`),
    h(
      "span",
      { class: "operators" },
      row("takes", trainer.takes_batches_per_second),
      row("wants", trainer.wants_batches_per_second),
    ),
  );
}

// Distance to the end, by following the inputs backwards; a circle, which no pipeline has, ends it.
function columnsOf(pipeline: Pipeline): StageInPipeline[][] {
  const feeds = new Map<string, string[]>();
  for (const stage of pipeline.stages) {
    for (const input of stage.input ?? [])
      feeds.set(input, [...(feeds.get(input) ?? []), stage.name]);
  }
  const distances = new Map<string, number>();
  const distance = (name: string, depth: number): number => {
    const known = distances.get(name);
    if (known !== undefined || depth > pipeline.stages.length) return known ?? 0;
    const next = feeds.get(name) ?? [];
    const found = next.length ? 1 + Math.max(...next.map((each) => distance(each, depth + 1))) : 0;
    distances.set(name, found);
    return found;
  };
  const columns: StageInPipeline[][] = [];
  for (const stage of pipeline.stages) {
    const at = distance(stage.name, 0);
    (columns[at] ??= []).push(stage);
  }
  return columns.filter((column) => column !== undefined).reverse();
}

function flowElement(report: Report, pipeline: Pipeline): HTMLElement {
  const columns = columnsOf(pipeline);
  const branched = columns.some((column) => column.length > 1);
  const piece = (stage: StageInPipeline, last: boolean): Child => {
    const queue = pipeline.queues.find((each) => each.producer === stage.name);
    const follows = !last || pipeline.trainer !== null;
    return [stageElement(report, stage), queue ? queueElement(queue) : follows ? arrow() : null];
  };
  const end = pipeline.trainer ? trainerElement(pipeline.trainer) : null;
  if (!branched) {
    const stages = columns.flat();
    return h(
      "div",
      { class: stages.length > 6 ? "flow wraps" : "flow" },
      stages.map((stage, i) => h("div", { class: "link" }, piece(stage, i === stages.length - 1))),
      end ? h("div", { class: "link last" }, end) : null,
    );
  }
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Pipeline" },
    h(
      "div",
      { class: "flow branched" },
      columns.map((column, i) =>
        h(
          "div",
          { class: "column" },
          column.map((stage) =>
            h("div", { class: "link" }, piece(stage, i === columns.length - 1)),
          ),
        ),
      ),
      end ? h("div", { class: "column" }, h("div", { class: "link" }, end)) : null,
    ),
  );
}

function table(pipeline: Pipeline): Table {
  const share = { format: numbers.percent };
  return {
    columns: [
      { title: "stage" },
      { title: "threads", format: numbers.count },
      { title: "busy", ...share },
      { title: "on a core", ...share },
      { title: "blocked inside", ...share },
      { title: "wants a core", ...share },
      { title: "waits for room", ...share },
      { title: "waits for input", ...share },
      { title: "allows batches/s", format: numbers.rateNumber },
      { title: "queue behind it: full", ...share },
      { title: "empty", ...share },
    ],
    rows: pipeline.stages.map((stage) => {
      const queue = pipeline.queues.find((each) => each.producer === stage.name);
      return [
        stage.name,
        stage.threads,
        stage.busy,
        stage.c,
        stage.b,
        stage.q,
        stage.wo,
        stage.wi,
        stage.bound_batches_per_second,
        queue?.full ?? null,
        queue?.empty ?? null,
      ];
    }),
  };
}

export function pipelineCard(report: Report, text: CardText): HTMLElement | null {
  const { pipeline } = report;
  if (!pipeline || pipeline.stages.length === 0) return null;
  const split = pipeline.stages.some((stage) => stage.c !== null);
  return card({
    key: "pipeline",
    text,
    chart: flowElement(report, pipeline),
    legend: stateLegend(split, pipeline.trainer !== null),
    table: () => table(pipeline),
  });
}
