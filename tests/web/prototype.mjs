// The runs of the pages' first prototype, one JSON file each, as the API answers them: real
// recordings to look at while the pages are written.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const plain = (text) => text?.replace(/\bconsumer\b/g, "trainer") ?? "";

function means(series, name, phases) {
  const steady = phases.find((phase) => phase.phase === "steady") ?? {
    from_seconds: 0,
    to_seconds: Infinity,
  };
  const sum = { c: 0, b: 0, q: 0, wi: 0, wo: 0 };
  let length = 0;
  series.t.forEach((t, i) => {
    const middle = t + series.d[i] / 2;
    if (middle < steady.from_seconds || middle > steady.to_seconds) return;
    length += series.d[i];
    for (const key of Object.keys(sum)) sum[key] += series.stages[name][key][i] * series.d[i];
  });
  for (const key of Object.keys(sum)) sum[key] /= length || 1;
  return { ...sum, busy: Math.min(1, sum.c + sum.b + sum.q) };
}

function pageOf(data) {
  const s = data.sentences;
  const [badge, ...rest] = s.VERDICT.split(": ");
  const fix = data.recommendations.find((each) => each.id === "R2");
  return {
    badge,
    severity:
      data.verdict.grade === "high"
        ? "high"
        : data.verdict.grade === "moderate"
          ? "moderate"
          : "good",
    verdict: plain(rest.join(": ")),
    conditional: false,
    conditions: s.BUT ? [plain(s.BUT)] : [],
    lines: [
      { label: "limit", text: plain(s.CULPRIT.split(": ")[0]), command: false },
      { label: "why", text: plain(s.BECAUSE), command: false },
      { label: "fix", text: plain(s["DO NEXT"]), command: false },
      ...(fix ? [{ label: "", text: fix.command, command: true }] : []),
      { label: "next", text: plain(s.THEN), command: false },
      { label: "cost", text: plain(s.COST), command: false },
    ],
  };
}

function convert(data) {
  const { series, run } = data;
  const full = [0, series.t[series.t.length - 1] + series.d[series.d.length - 1]];
  const inner = data.stages.map((stage) => stage.name);
  const consumer = data.findings.find((finding) => finding.kind === "consumer");
  const card = (question, answer) => ({
    question,
    answer,
    read: ["How the chart is read stands here."],
    sql: `SELECT * FROM run_summary WHERE run_id = ${run.id}`,
  });
  const limit = data.verdict.limit;
  const queues = data.queues.map((queue) => ({
    name: queue.queue,
    producer: queue.producer,
    consumer: plain(queue.consumer),
    capacity: queue.capacity_count,
    fill: queue.mean_occupancy_ratio,
    full: queue.full_ratio,
    empty: queue.empty_ratio,
  }));
  const report = {
    ...data,
    page: pageOf(data),
    cards: {
      pipeline: card(
        "Where is the narrow place?",
        `${plain(limit.name)} is the last stage that is busy; behind it the queues run empty`,
      ),
      ladder: card(
        "What would each resource allow alone?",
        plain(data.sentences.BECAUSE.split(";")[0]),
      ),
      causes: card(
        "Who does the trainer wait for?",
        plain(`${(data.verdict.stall_ratio * 100).toFixed(1)} % of a step is waiting`),
      ),
      when: card("When does it happen?", "All through the run"),
      bytes: card("What does a row cost in bytes?", "More than half of what is read is not wanted"),
      requests: card("What reaches the device?", "Most reads are below 128 KiB"),
      machine: card("Was the machine free?", "No: some task waited for a core"),
      trust: card("Can these numbers be trusted?", plain(data.sentences.COST)),
      operators: card("Which operator costs what?", `${limit.operator} holds the pipeline`),
      stacks: card("In which code?", "Stacks of all threads"),
      environment: card("What could be measured here?", "Most probes work"),
    },
    pipeline: {
      stages: data.stages.map((stage, i) => ({
        ...stage,
        max_threads: stage.threads,
        ...means(series, stage.name, data.run_phases),
        bound_batches_per_second:
          data.findings.find((finding) => finding.name === stage.name)?.bound_batches_per_second ??
          null,
        limit: limit.name === stage.name,
        input: i ? [inner[i - 1]] : [],
      })),
      queues,
      trainer: data.stall_causes
        ? {
            wait_ratio: data.verdict.stall_ratio,
            takes_batches_per_second: data.verdict.observed.batches_per_second,
            wants_batches_per_second: consumer?.bound_batches_per_second ?? null,
            limit: limit.kind === "consumer",
          }
        : null,
    },
    resource_ladder: data.resource_ladder.map((rung) => ({
      ...rung,
      resource: plain(rung.resource),
    })),
    questions: [
      { title: "Stages of this run", sql: `SELECT * FROM stage_summary WHERE run_id = ${run.id}` },
    ],
  };
  for (const key of [
    "series",
    "stacks",
    "frames",
    "what_if",
    "sentences",
    "step_histogram",
    "io",
    "off_cpu",
  ])
    delete report[key];
  const kinds = { cpu: "cpu", off_cpu: "off_cpu", waiting: "queue_wait" };
  const inSeconds = (node) => [node[0], node[1] / 1e3, (node[2] ?? []).map(inSeconds)];
  const stacks = {};
  for (const [kind, key] of Object.entries(kinds)) {
    const roots = (data.stacks[key] ?? []).map(inSeconds);
    stacks[kind] = {
      kind,
      kinds: Object.keys(kinds),
      total_seconds: roots.reduce((sum, node) => sum + node[1], 0),
      frames: data.frames,
      roots,
    };
  }
  const io = data.io?.read;
  const step = series.steps;
  return {
    report,
    course: {
      schema: "headrace.course/1",
      full,
      from: full[0],
      to: full[1],
      t: series.t,
      d: series.d,
      stages: inner.map((name) => {
        const own = series.stages[name];
        return { name, busy: own.c.map((c, i) => Math.min(1, c + own.b[i] + own.q[i])), ...own };
      }),
      queues: queues.map((queue) => ({ ...queue, ...series.queues[queue.name] })),
      steps: {
        count: step.count,
        rows: step.rows,
        wait: step.wait.map((v) => v / 1e3),
        compute: step.compute.map((v) => v / 1e3),
        p50: step.count.map(() => null),
        p99: step.count.map(() => null),
      },
      phases: data.run_phases.map((phase) => ({
        phase: phase.phase,
        from: phase.from_seconds,
        to: phase.to_seconds,
      })),
      marks: [],
    },
    "operators/course": {
      t: series.t,
      d: series.d,
      operators: Object.entries(series.operators).map(([name, busy]) => ({
        name,
        stage: data.operators.find((each) => each.operator === name)?.stage ?? "",
        busy,
      })),
    },
    resources: {
      series: series.resources.map((each) => ({
        of: null,
        ...each,
        d: each.t.map((t, i) => (each.t[i + 1] ?? t + 1) - t),
      })),
    },
    histograms: {
      steps: (data.step_histogram ?? []).map(([ns, count]) => [ns / 1e9, count]),
      io: io
        ? [
            {
              direction: "read",
              size: io.block_size_count ?? [],
              latency: (io.block_latency_count ?? []).map(([ns, count]) => [ns / 1e9, count]),
            },
          ]
        : [],
    },
    stacks,
    off_cpu: {
      rows: (data.off_cpu ?? []).map((row) => ({
        operator: row.operator,
        stage: row.stage,
        cause: row.cause,
        class: row.cause,
        seconds: row.ns / 1e9,
        count: row.n,
      })),
    },
    settings: {
      settings: inner.map((name) => ({
        key: `${name}.parallelism`,
        title: `${name} threads`,
        unit: "threads",
        value: data.stages.find((stage) => stage.name === name).threads,
        min: 1,
        max: 8,
      })),
    },
  };
}

export function readPrototype(folder) {
  const runs = new Map();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
    const run = convert(JSON.parse(readFileSync(join(folder, file), "utf8")));
    runs.set(100 + runs.size, {
      ...run,
      report: { ...run.report, run: { ...run.report.run, id: 100 + runs.size } },
    });
  }
  return runs;
}
