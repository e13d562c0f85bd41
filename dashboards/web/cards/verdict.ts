// The first page of a run: what limits, why, what to change, what will limit it next. Every sentence
// is the report's; the two bars are its numbers.
import type { Child } from "../element";
import { h } from "../element";
import * as numbers from "../numbers";
import type { FirstPage, PageLine, Report } from "../types";
import { command } from "./command";

const LABELS: Record<string, string> = {
  limit: "What limits",
  why: "Why",
  gpu: "GPU",
  check: "What would decide it",
  but: "But",
  fix: "What to change",
  next: "What will limit it next",
  plan: "What was planned",
  also: "Also",
  basis: "Basis",
  unseen: "Not seen",
  cost: "Cost of recording",
  more: "More",
  // Of a job.
  job: "Job",
  gain: "What that gains",
  then: "What will limit it next",
  lag: "Who lags",
  lost: "What was lost",
};
const JOB_LABELS: Record<string, string> = { cost: "What rows cost" };

// Intervals and remarks in brackets are set lighter, and "1 -> 2" and a number with its unit stand on
// one line; the words stay as they are.
const UNBROKEN = String.raw`\S+ -> \S+|[-+<]?\d[\d.,]* (?:%|[kMGT]?i?B(?![a-z])|(?:[kM] )?\w+/s)[.,;:]?`;
const PARTS = new RegExp(String.raw`(\[[^\][]*\][.,;:]?|\([^()]*\)[.,;:]?|${UNBROKEN})`);
function sentence(text: string): Child[] {
  // What is in brackets, a number, or an arrow is at every second place.
  return text
    .split(PARTS)
    .map((part, i) =>
      i % 2 === 0 ? part : h("span", { class: /^[[(]/.test(part) ? "u" : "nowrap" }, part),
    );
}

interface Answer {
  label: string;
  lines: PageLine[];
}

// A line without a label goes on with the one before.
function answersOf(lines: readonly PageLine[]): Answer[] {
  const answers: Answer[] = [];
  for (const line of lines) {
    const last = answers[answers.length - 1];
    if (line.label === "" && last) last.lines.push(line);
    else answers.push({ label: line.label, lines: [line] });
  }
  return answers;
}

// The order is the report's. Side by side stand what is the matter, what to do, and what comes of it.
function columnsOf(answers: readonly Answer[]): Answer[][] {
  const begins = (labels: string[]) => {
    const found = answers.findIndex((answer) => labels.includes(answer.label));
    return found < 0 ? answers.length : found;
  };
  const fix = begins(["fix"]);
  const after = Math.max(fix, begins(["next", "then", "plan", "cost"]));
  return [answers.slice(0, fix), answers.slice(fix, after), answers.slice(after)].filter(
    (column) => column.length > 0,
  );
}

const LONG = 90; // letters; longer sentences are set smaller

function answerElement(answer: Answer, labels: Record<string, string>): HTMLElement {
  const name = labels[answer.label] ?? answer.label;
  const long = (answer.lines[0]?.text.length ?? 0) > LONG ? " long" : "";
  return h(
    "div",
    { class: `answer answer-${answer.label.replace(/\W/g, "")}${long}` },
    h("dt", null, name),
    h(
      "dd",
      null,
      answer.lines.map((line) =>
        line.command || answer.label === "more"
          ? command(line.text, "cmd flat")
          : h("p", null, sentence(line.text)),
      ),
    ),
  );
}

function stepBar(name: string, whole: number, longest: number, wait: number, end: Child) {
  const computes = whole * (1 - wait);
  const label = `${name}: ${numbers.seconds(whole)} each, ${numbers.percent(wait)} of it waiting`;
  return [
    h("span", { class: "who" }, name),
    h(
      "div",
      {
        class: "steprow",
        role: "img",
        "aria-label": label,
        style: { width: `${(whole / longest) * 100}%` },
      },
      h(
        "span",
        { class: "fill-compute", style: { flex: 1 - wait } },
        `computes ${numbers.seconds(computes)}`,
      ),
      wait > 0.001
        ? h(
            "span",
            { class: "fill-wait", style: { flex: wait } },
            wait > 0.14 ? `waits ${numbers.seconds(whole * wait)}` : "",
          )
        : null,
    ),
    h("span", { class: "end" }, end),
  ];
}

// A step now, and as predicted; nothing where there is no trainer.
function stepBars(report: Report): HTMLElement | null {
  const { verdict, pipeline } = report;
  const rate = verdict?.observed?.batches_per_second;
  const wait = verdict?.stall_ratio;
  const wants = pipeline?.trainer?.wants_batches_per_second;
  if (!rate || typeof wait !== "number" || !pipeline?.trainer) return null;
  const now = 1 / rate;
  const predicted = verdict?.predicted;
  const then = predicted?.batches_per_second ? 1 / predicted.batches_per_second : null;
  const longest = Math.max(now, then ?? 0);
  const rateText = (value: number | null | undefined, rest = "") => [
    h("b", null, numbers.rateNumber(value)),
    ` batches/s ${rest}`,
  ];
  const gains = predicted && then && Math.abs(predicted.gain_ratio ?? 0) > 0.005;
  const thenWait = then && wants ? Math.max(0, Math.min(1, 1 - 1 / (then * wants))) : 0;
  const interval = numbers.interval(
    predicted?.batches_per_second_low,
    predicted?.batches_per_second_high,
  );
  return h(
    "div",
    { class: "stepbars" },
    stepBar("a step now", now, longest, Math.min(1, wait), rateText(rate)),
    gains
      ? stepBar(
          "predicted",
          then,
          longest,
          thenWait,
          rateText(predicted.batches_per_second, interval),
        )
      : null,
  );
}

function severity(page: FirstPage): string {
  const known = ["good", "moderate", "high"].find((each) => each === page.severity);
  return known ?? "none";
}

// The first page of a run or of a job, as a terminal has it; `picture` stands below its verdict.
export function firstPageCard(page: FirstPage, picture: Child): HTMLElement {
  const ofJob = page.lines.some((line) => line.label === "job");
  const labels = ofJob ? { ...LABELS, ...JOB_LABELS } : LABELS;
  return h(
    "section",
    { class: `card verdict severity-${severity(page)}`, "aria-label": "Verdict" },
    page.badge ? h("p", { class: `badge badge-${severity(page)}` }, page.badge) : null,
    h("h1", null, sentence(page.verdict)),
    picture,
    page.conditions.map((text) => h("p", { class: "conditions" }, text)),
    h(
      "div",
      { class: "answers" },
      columnsOf(answersOf(page.lines)).map((column) =>
        h(
          "dl",
          null,
          column.map((answer) => answerElement(answer, labels)),
        ),
      ),
    ),
  );
}

export function verdictCard(report: Report): HTMLElement {
  const { page } = report;
  if (page) return firstPageCard(page, stepBars(report));
  const recording = report.run.state === "recording";
  return h(
    "section",
    { class: "card verdict", "aria-label": "Verdict" },
    h("h1", null, recording ? "No verdict yet." : "This run has no verdict."),
    h(
      "p",
      { class: "conditions" },
      recording
        ? "The run is being recorded. The first sentences come after about 20 steps."
        : "Too little was recorded to say what limits it.",
    ),
  );
}
