// The overview of a run: what limits it first, then the evidence, in the order in which one asks.
import { ApiError, get, getOr } from "../api";
import { bytesCard } from "../cards/bytes";
import { emptyCards, guarded } from "../cards/card";
import { causesCard } from "../cards/causes";
import { courseCard, coursePath } from "../cards/course";
import type { CourseCard } from "../cards/course";
import { machineCard } from "../cards/machine";
import { pipelineCard } from "../cards/pipeline";
import { requestsCard } from "../cards/requests";
import { ladderCard } from "../cards/resource_ladder";
import { threadsCard } from "../cards/threads";
import { trustCard } from "../cards/trust";
import { verdictCard } from "../cards/verdict";
import type { Child } from "../element";
import { h } from "../element";
import { extended, follow, since } from "../live";
import { timeline } from "../time";
import type { CardText, Course, Histograms, Report, Resources } from "../types";
import type { Context, Shown } from "./context";
import { keepPlace, runTitle, setLiveState, showRun, watchRange } from "./frame";

// Stages that limit, and the trainer; an operator's limit is its stage's.
export function limitsOf(report: Report): Set<string> {
  const names = (report.pipeline?.stages ?? [])
    .filter((stage) => stage.limit)
    .map((stage) => stage.name);
  if (report.pipeline?.trainer?.limit) names.push("trainer");
  return new Set(names);
}

interface Evidence {
  report: Report;
  course: Course | null;
  histograms: Histograms | null;
  resources: Resources | null;
}

const MOST_WINDOWS = 900; // of a live course, before it is asked for again, coarser

// The phases are the report's; a course has them only where it is their part of it.
function withPhases(course: Course | null, report: Report): Course | null {
  if (!course || course.phases?.length > 0) return course;
  const known = (report.run_phases ?? []).filter(
    (each) => each.from_seconds !== null && each.to_seconds !== null,
  );
  const phases = known.map((each) => ({
    phase: each.phase,
    from: each.from_seconds ?? 0,
    to: each.to_seconds ?? 0,
  }));
  return { ...course, phases };
}

async function evidence(id: number, signal: AbortSignal): Promise<Evidence> {
  const at = `/api/runs/${id}`;
  const [report, course, histograms, resources] = await Promise.all([
    get<Report>(`${at}/report?brief=1`, signal),
    getOr<Course | null>(coursePath(id), null, signal),
    getOr<Histograms | null>(`${at}/histograms`, null, signal),
    getOr<Resources | null>(`${at}/resources?px=200`, null, signal),
  ]);
  return { report, course: withPhases(course, report), histograms, resources };
}

// Side by side; a card that has nothing to show goes below the other, not beside its height.
function pair(kind: string, left: HTMLElement | null, right: HTMLElement | null): Child {
  const empty = (card: HTMLElement) => card.classList.contains("empty");
  if (!left || !right || empty(left) !== empty(right)) return [left, right];
  return h("div", { class: `two ${kind}`.trim() }, left, right);
}

const KEYS = ["pipeline", "ladder", "causes", "when", "bytes", "requests", "machine", "trust"];
const FEW = 2; // so many empty cards stand in their places; more are one card at the end

interface Drawn {
  body: Child;
  course: CourseCard | null;
}

function draw(id: number, found: Evidence, signal: AbortSignal): Drawn {
  const { report, course, histograms } = found;
  const cards = { ...report.cards };
  const empty = KEYS.map((key) => cards[key]).filter((text): text is CardText =>
    Boolean(text?.empty),
  );
  const together = empty.length > FEW;
  if (together) for (const key of KEYS) if (cards[key]?.empty) delete cards[key];
  let lanes: CourseCard | null = null;
  const when = guarded(cards.when, "course", (text) => {
    if (!course || course.t.length === 0) return null;
    lanes = courseCard(id, course, limitsOf(report), text, signal);
    return lanes.element;
  });
  const body = [
    verdictCard(report),
    guarded(cards.pipeline, "pipeline", (text) => pipelineCard(report, text)),
    threadsCard(report),
    pair(
      "wide-left",
      guarded(cards.ladder, "ladder", (text) => ladderCard(report, text)),
      guarded(cards.causes, "causes", (text) => causesCard(report, histograms, text)),
    ),
    when,
    pair(
      "",
      guarded(cards.bytes, "bytes", (text) => bytesCard(report, text)),
      guarded(cards.requests, "requests", (text) => requestsCard(histograms, text)),
    ),
    guarded(cards.machine, "machine", (text) =>
      machineCard(found.resources?.series ?? [], text, signal),
    ),
    guarded(cards.trust, "trust", (text) => trustCard(report, text)),
    together ? emptyCards(empty) : null,
  ];
  return { body, course: lanes };
}

export async function overview({ id, signal }: Context): Promise<Shown> {
  let found = await evidence(id, signal);
  timeline.begin(found.course?.full ?? [0, found.report.run.duration_seconds ?? 1]);
  const box = h("div", { class: "page" });
  // Charts of a page that is drawn again must not listen on.
  let drawing = new AbortController();
  let lanes: CourseCard | null = null;
  const show = () => {
    drawing.abort();
    drawing = new AbortController();
    const drawn = draw(id, found, drawing.signal);
    lanes = drawn.course;
    keepPlace(box, drawn.body);
  };
  signal.addEventListener("abort", () => drawing.abort());
  show();

  const once = async () => {
    try {
      const next = await evidence(id, signal);
      // Windows that came while the answer was made are newer than it.
      const end = next.course?.full[1] ?? 0;
      if (next.course && found.course)
        next.course = extended(next.course, since(found.course, end));
      found = next;
      timeline.grow(next.course?.full[1] ?? 0);
      showRun(found.report);
      show();
    } catch (error) {
      if (!(error instanceof ApiError) && !signal.aborted) throw error;
    }
  };
  // One at a time, so that an old answer never comes after a new one.
  let asking = false;
  let wanted = false;
  const again = async () => {
    wanted = true;
    if (asking) return;
    asking = true;
    while (wanted && !signal.aborted) {
      wanted = false;
      await once();
    }
    asking = false;
  };
  const live = () =>
    follow(id, signal, {
      course(newest) {
        if (!found.course || found.course.t.length > MOST_WINDOWS) return void again();
        const grown = extended(found.course, newest);
        found.course = grown;
        lanes?.show(grown);
        timeline.grow(grown.full[1]);
      },
      report: () => void again(),
      state(state) {
        setLiveState(state);
        if (state !== "recording") void again();
      },
      connected: (connected) => setLiveState(connected ? "recording" : "lost"),
    });
  return {
    title: runTitle(found.report),
    body: box,
    after: () => {
      showRun(found.report);
      watchRange(signal);
      if (found.report.run.state === "recording") live();
    },
  };
}
