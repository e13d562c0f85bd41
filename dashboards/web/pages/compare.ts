// Comparisons: the list, and one of them: is B better, how sure, and what carries the change.
import { current, link, replaceQuery } from "../address";
import { get } from "../api";
import { card, emptyCard, plainCard } from "../cards/card";
import { command } from "../cards/command";
import { ecdf } from "../charts/ecdf";
import { forest } from "../charts/forest";
import type { ForestRow } from "../charts/forest";
import { slopes } from "../charts/slopes";
import type { Pair } from "../charts/slopes";
import { legend } from "../charts/states";
import type { Child } from "../element";
import { fitted, h } from "../element";
import * as numbers from "../numbers";
import type {
  AttributionPart,
  ComparedMetric,
  ComparedSample,
  Comparison,
  ComparisonRow,
} from "../types";
import type { Context, Shown } from "./context";

const NAMES: Record<string, string> = {
  rows_per_s: "rows/s",
  wait_ratio: "trainer wait",
  cpu_s_per_row: "CPU per row",
  peak_rss_bytes: "peak RSS",
  step_p50_s: "p50 step",
  step_p99_s: "p99 step",
  read_bytes_per_row: "read per row",
  device_bytes_per_row: "from device per row",
  elapsed_s: "elapsed",
  cpu_s: "CPU time",
  device_bytes: "read from device",
};

export const VERDICTS: Record<string, string> = {
  faster: "B is faster",
  slower: "B is slower",
  same: "The same",
  cannot_tell: "Cannot tell",
};

const nameOf = (metric: ComparedMetric) => NAMES[metric.metric] ?? metric.metric;
const verdictClass = (verdict: string) =>
  verdict === "faster" ? "good" : verdict === "slower" ? "high" : "none";

// ---------------------------------------------------------------- list

export async function comparisons({ signal }: Context): Promise<Shown> {
  const { comparisons: list } = await get<{ comparisons: ComparisonRow[] }>(
    "/api/comparisons",
    signal,
  );
  const question = "What has been compared?";
  const heading = h("h1", { class: "vh" }, "Comparisons");
  const title = "Comparisons · headrace";
  if (list.length === 0) {
    const empty =
      "Nothing yet. This command runs a pipeline with two settings in turn and says which is faster.";
    const line = "headrace compare pipeline.toml --a decode.parallelism=1 --b decode.parallelism=2";
    return { title, body: [heading, emptyCard({ question, empty, command: line }, "comparisons")] };
  }
  const row = (each: ComparisonRow) =>
    h(
      "tr",
      null,
      h(
        "th",
        { scope: "row" },
        h("a", { href: link("compare", each.id) }, each.title || `comparison ${each.id}`),
        h("span", { class: "u" }, ` ${each.id}`),
      ),
      h(
        "td",
        null,
        h(
          "span",
          { class: `badge badge-${verdictClass(each.verdict)}` },
          VERDICTS[each.verdict] ?? (each.verdict || "none"),
        ),
      ),
      h("td", { class: "hide" }, each.a),
      h("td", { class: "hide" }, each.b),
      h("td", { class: "num" }, numbers.count(each.pairs)),
      h("td", { class: "num hide" }, numbers.moment(each.started_seconds)),
    );
  const column = (text: string, tone = "") => h("th", { scope: "col", class: tone }, text);
  const table = h(
    "table",
    { class: "runs" },
    h("caption", { class: "vh" }, question),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        column("comparison"),
        column("verdict"),
        column("A", "hide"),
        column("B", "hide"),
        column("pairs", "num"),
        column("started", "num hide"),
      ),
    ),
    h("tbody", null, list.map(row)),
  );
  const box = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Comparisons" },
    table,
  );
  return {
    title,
    body: [heading, plainCard(question, numbers.plural(list.length, "comparison"), box)],
  };
}

// ---------------------------------------------------------------- one

function toneOf(metric: ComparedMetric): ForestRow["tone"] {
  const { change_low: low, change_high: high } = metric;
  // With several figures looked at, an interval of one of them alone proves nothing.
  if (metric.word === "cannot tell") return "none";
  if (low === null || high === null || (low <= 0 && high >= 0)) return "none";
  return low > 0 === metric.higher_is_better ? "better" : "worse";
}

function forestCard(comparison: Comparison): HTMLElement {
  const rows: ForestRow[] = comparison.metrics.map((metric) => ({
    name: nameOf(metric),
    change: metric.change,
    // Of too few pairs an interval would promise what it does not hold.
    low: comparison.too_few ? null : metric.change_low,
    high: comparison.too_few ? null : metric.change_high,
    word: metric.word,
    tone: toneOf(metric),
    note: metric.reason ?? "",
    points: metric.change_is === "difference",
  }));
  const units = numbers.plural(comparison.units_count ?? 0, comparison.unit);
  return card({
    key: "changes",
    text: {
      question: "By how much does B differ from A?",
      answer: comparison.too_few
        ? `${units}: too few for intervals`
        : `${units}; the line is the 95 % interval of each change`,
      read: [
        "Each dot is the change from A to B. An interval that holds 0 could be no change.",
        "Blue is better, vermilion is worse, grey could be no change.",
        "pt: points of a share, not per cent of a value.",
      ],
    },
    chart: fitted((width) =>
      forest(width, rows, "Change of each figure from A to B with its interval"),
    ),
    legend: legend([
      { class: "tone-better", text: "better" },
      { class: "tone-worse", text: "worse" },
      { class: "tone-none", text: "could be no change" },
    ]),
    table: () => ({
      columns: [
        { title: "figure" },
        { title: "A (median)" },
        { title: "B (median)" },
        { title: "change", format: numbers.change },
        { title: "low", format: numbers.change },
        { title: "high", format: numbers.change },
        { title: "p (Holm)" },
        { title: "verdict" },
      ],
      rows: comparison.metrics.map((metric) => [
        nameOf(metric),
        numbers.inUnit(metric.a_median, metric.unit),
        numbers.inUnit(metric.b_median, metric.unit),
        metric.change,
        metric.change_low,
        metric.change_high,
        metric.p_holm ?? null,
        metric.word,
      ]),
    }),
  });
}

const figureOf = (sample: ComparedSample, metric: string) => {
  const value = sample[metric];
  return typeof value === "number" ? value : null;
};

const counts = (sample: ComparedSample) => !sample.left_out && !sample.left_out_by;

function pairsOf(comparison: Comparison, metric: ComparedMetric): Pair[] {
  const pairs: Pair[] = [];
  const length = Math.min(comparison.a.samples.length, comparison.b.samples.length);
  for (let i = 0; i < length; i++) {
    const [first, second] = [comparison.a.samples[i], comparison.b.samples[i]];
    const a = figureOf(first, metric.metric);
    const b = figureOf(second, metric.metric);
    if (a === null || b === null) continue;
    const out = !counts(first) || !counts(second);
    const text = `pair ${i + 1}, runs ${first.run} and ${second.run}: ${numbers.inUnit(a, metric.unit)} to ${numbers.inUnit(b, metric.unit)}${out ? ", left out" : ""}`;
    pairs.push({ a, b, text, left_out: out });
  }
  return pairs;
}

function samplesTable(comparison: Comparison, metric: ComparedMetric) {
  const format = (value: number) => numbers.inUnit(value, metric.unit);
  const rows = comparison.a.samples.map((sample, i) => {
    const other = comparison.b.samples[i];
    return [
      i + 1,
      sample.run,
      other?.run ?? null,
      figureOf(sample, metric.metric),
      other ? figureOf(other, metric.metric) : null,
      sample.left_out || other?.left_out || "",
    ];
  });
  return {
    columns: [
      { title: "pair" },
      { title: "run A" },
      { title: "run B" },
      { title: "A", format },
      { title: "B", format },
      { title: "left out" },
    ],
    rows,
  };
}

// Pairs and distributions of one figure, which can be chosen.
function samplesCards(comparison: Comparison): Child {
  const usable = comparison.metrics.filter((metric) => pairsOf(comparison, metric).length > 0);
  if (usable.length === 0) return null;
  const paired = comparison.unit === "pair";
  const box = h("div", { class: "two" });
  const asked = current().query.get("with");
  const choice = h(
    "select",
    { "aria-label": "Figure", "data-focus": "figure" },
    usable.map((metric) =>
      h("option", { value: metric.metric, selected: metric.metric === asked }, nameOf(metric)),
    ),
  );
  const show = () => {
    const metric = usable.find((each) => each.metric === choice.value) ?? usable[0];
    const pairs = pairsOf(comparison, metric);
    const format = (value: number) => numbers.inUnit(value, metric.unit);
    const side = (samples: readonly ComparedSample[]) =>
      samples
        .filter(counts)
        .map((sample) => figureOf(sample, metric.metric))
        .filter((value): value is number => value !== null);
    const name = nameOf(metric);
    const slopesCard = card({
      key: `pairs-${metric.metric}`,
      text: {
        question: paired ? "Do all pairs agree?" : "How do the runs lie?",
        answer: `${name} of ${numbers.plural(pairs.length, paired ? "pair" : "run")}`,
        read: [
          "Each line is a pair of runs made one after the other, from A to B.",
          "Lines that all go one way are a change. Lines that cross are noise.",
          "Dotted lines are left out of the figures.",
        ],
      },
      chart: fitted((width) =>
        slopes(width, pairs, format, metric.higher_is_better, `${name} of each pair, A to B`),
      ),
      table: () => samplesTable(comparison, metric),
    });
    const ecdfCard = card({
      key: `ecdf-${metric.metric}`,
      text: {
        question: "Is all of B different, or only a part?",
        answer: `${name}: share of the runs with at most that value`,
        read: [
          "Each step is a run.",
          "Where one line stays to the right of the other, all of that side is larger.",
        ],
      },
      chart: fitted((width) =>
        ecdf(
          width,
          side(comparison.a.samples),
          side(comparison.b.samples),
          format,
          `Distribution of ${name} of A and of B`,
        ),
      ),
      legend: legend([
        { class: "side-a", text: `A: ${comparison.a.what || comparison.a.label}` },
        { class: "side-b", text: `B: ${comparison.b.what || comparison.b.label}` },
      ]),
      table: () => samplesTable(comparison, metric),
    });
    box.replaceChildren(slopesCard, ecdfCard);
  };
  choice.addEventListener("change", () => {
    replaceQuery({ with: choice.value });
    show();
  });
  show();
  return [h("label", { class: "choice" }, "Figure ", choice), box];
}

function attributionRow(part: AttributionPart, most: number): HTMLElement {
  const share = part.throughput_share_ratio ?? 0;
  const width = `${((Math.abs(share) / most) * 50).toFixed(2)}%`;
  const left = share < 0;
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, part.name),
    h(
      "td",
      { class: "grow" },
      h(
        "span",
        { class: "balance", "aria-hidden": "true" },
        h("i", {
          class: left ? "tone-worse" : "tone-better",
          style: left ? { width, right: "50%" } : { width, left: "50%" },
        }),
      ),
    ),
    h(
      "td",
      { class: "num" },
      part.throughput_share_ratio === null
        ? numbers.NONE
        : numbers.change(share).replace("%", "pt"),
    ),
    h("td", { class: "num hide" }, numbers.seconds(part.cpu_a_seconds)),
    h("td", { class: "num hide" }, numbers.seconds(part.cpu_b_seconds)),
  );
}

function attributionCard(comparison: Comparison): Child {
  const parts = comparison.attribution?.attribution_parts ?? [];
  const shown = parts.filter(
    (part) => part.throughput_share_ratio !== null || part.cpu_a_seconds !== null,
  );
  if (shown.length === 0) {
    const why = comparison.notes?.why_unavailable;
    return why
      ? emptyCard({ question: "What carries the change?", empty: why }, "attribution")
      : null;
  }
  const most = Math.max(...shown.map((part) => Math.abs(part.throughput_share_ratio ?? 0))) || 1;
  const column = (text: string, tone = "") => h("th", { scope: "col", class: tone }, text);
  const table = h(
    "table",
    { class: "bars" },
    h("caption", { class: "vh" }, "Parts of the change"),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        column("part"),
        column("moves the rate by"),
        column("points", "num"),
        column("CPU a row: A", "num hide"),
        column("B", "num hide"),
      ),
    ),
    h(
      "tbody",
      null,
      shown.map((part) => attributionRow(part, most)),
    ),
  );
  return card({
    key: "attribution",
    text: {
      question: "What carries the change?",
      answer: comparison.notes?.why || "No single part of it",
      read: [
        "The points of all parts together are the change of the rate.",
        "A part to the left of the middle slows B down.",
      ],
    },
    chart: table,
    table: () => ({
      columns: [
        { title: "part" },
        { title: "kind" },
        { title: "moves the rate by", format: numbers.change },
        { title: "CPU a row: A", format: numbers.seconds },
        { title: "B", format: numbers.seconds },
      ],
      rows: parts.map((part) => [
        part.name,
        part.kind,
        part.throughput_share_ratio,
        part.cpu_a_seconds,
        part.cpu_b_seconds,
      ]),
    }),
  });
}

function verdictSection(comparison: Comparison): HTMLElement {
  const { notes } = comparison;
  const first = comparison.metrics[0];
  const change = first?.change ?? null;
  const head = comparison.too_few
    ? VERDICTS.cannot_tell
    : (VERDICTS[comparison.verdict] ?? "No verdict");
  const interval = comparison.too_few
    ? "seen, without an interval"
    : numbers.percentInterval(first?.change_low, first?.change_high);
  const lines: [string, Child][] = [
    ["A", comparison.a.what || comparison.a.label],
    ["B", comparison.b.what || comparison.b.label],
    [
      "How",
      `${numbers.plural(comparison.units_count ?? 0, comparison.unit)}${notes?.end ? `, ${notes.end}` : ""}`,
    ],
    ["Why", notes?.why || notes?.why_unavailable || null],
    ["Too few", comparison.too_few ?? null],
    [
      "Noise",
      comparison.noise === null
        ? null
        : `Two runs of the same side differ by up to ${numbers.change(comparison.noise).replace("+", "")}, 19 of 20 times.`,
    ],
    ["Machine", notes?.machine ?? null],
    [
      "Differs",
      notes?.differences?.length ? notes.differences.map((text) => h("p", null, text)) : null,
    ],
    ["Left out", notes?.outliers?.length ? notes.outliers.map((text) => h("p", null, text)) : null],
    [
      "Gates",
      notes?.gates?.length
        ? notes.gates.map((gate) =>
            h(
              "p",
              null,
              h("b", null, gate.state),
              ` ${gate.gate}${gate.why ? `: ${gate.why}` : ""}`,
            ),
          )
        : null,
    ],
  ];
  return h(
    "section",
    { class: "card verdict", "aria-label": "Verdict" },
    h("p", { class: `badge badge-${verdictClass(comparison.verdict)}` }, head),
    h(
      "h1",
      null,
      change === null
        ? "The two sides could not be compared."
        : [`${numbers.change(change)} ${first.unit} `, h("span", { class: "u" }, interval)],
    ),
    h(
      "dl",
      { class: "rows" },
      lines
        .filter(([, value]) => value !== null && value !== "")
        .map(([name, value]) =>
          h("div", { class: "answer" }, h("dt", null, name), h("dd", null, value)),
        ),
    ),
    notes?.repeat ? command(notes.repeat) : null,
  );
}

// The code of two runs, one of each side, beside each other.
function stacksLinks(comparison: Comparison): Child {
  const pairs = comparison.a.samples.map((a, i) => [a, comparison.b.samples[i]] as const);
  const usable = pairs.filter(([a, b]) => b && counts(a) && counts(b));
  if (usable.length === 0) return null;
  const MOST = 12;
  return plainCard(
    "Which code takes more or less time?",
    "A differential flame of two runs, B against A",
    h(
      "ul",
      { class: "working" },
      usable
        .slice(0, MOST)
        .map(([a, b]) =>
          h(
            "li",
            null,
            h(
              "a",
              { href: link("operators", b.run, { with: String(a.run) }) },
              `run ${b.run} against run ${a.run}`,
            ),
          ),
        ),
    ),
  );
}

// A comparison that is still being made, or was ended before it had a result: its runs so far.
function unfinished(id: number, found: Comparison): Child {
  const made = found.made_by ?? [];
  const { summary } = found;
  const state = summary?.state ? `It is ${summary.state}` : "It has no result";
  const row = (each: (typeof made)[number]) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, `pair ${each.pair}, ${each.side}`),
      h(
        "td",
        null,
        each.run === null
          ? numbers.NONE
          : h("a", { href: link("overview", each.run) }, `run ${each.run}`),
      ),
      h("td", null, each.left_out),
    );
  return [
    h("h1", { class: "vh" }, summary?.title || `Comparison ${id}`),
    plainCard(
      summary ? `Is ${summary.b} better than ${summary.a}?` : "Is B better than A?",
      `${state}: there is no verdict.`,
      made.length > 0
        ? h(
            "table",
            null,
            h("caption", { class: "vh" }, "Runs of this comparison"),
            h("tbody", null, made.map(row)),
          )
        : null,
    ),
  ];
}

export async function comparison({ id, signal }: Context): Promise<Shown> {
  const found = await get<Comparison>(`/api/comparisons/${id}`, signal);
  const title = `${found.name || found.summary?.title || `comparison ${id}`} · headrace`;
  if (!Array.isArray(found.metrics) || !found.a || !found.b)
    return { title, body: unfinished(id, found) };
  return {
    title,
    body: [
      verdictSection(found),
      forestCard(found),
      samplesCards(found),
      attributionCard(found),
      stacksLinks(found),
    ],
  };
}
