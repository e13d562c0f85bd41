// Runs that no machine has to record: answers of the API in every state that a page must bear, each
// from a seed, so that a failing test can be repeated. Their numbers are invented.

const random = (seed) => {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
};

const READ = ["Each row is one thing.", "Blue is work, grey is waiting."];

function cardsOf(answers, id) {
  const questions = {
    pipeline: "Where is the narrow place?",
    ladder: "What would each resource allow alone?",
    causes: "Who does the trainer wait for?",
    when: "When does it happen?",
    bytes: "What does a row cost in bytes?",
    requests: "What reaches the device?",
    machine: "Was the machine free?",
    trust: "Can these numbers be trusted?",
    operators: "Which operator costs what?",
    stacks: "In which code?",
    environment: "What could be measured here?",
  };
  const cards = {};
  for (const [key, question] of Object.entries(questions)) {
    const answer = answers[key];
    cards[key] =
      answer === undefined
        ? {
            question,
            empty: `Nothing was recorded for: ${question.toLowerCase()}`,
            command: "headrace doctor",
          }
        : { question, answer, read: READ, sql: `SELECT * FROM stage_summary WHERE run_id = ${id}` };
  }
  return cards;
}

const ANSWERS = {
  pipeline: "fetch is the last stage that is busy; behind it the queues run empty",
  ladder: "fetch allows 129 batches/s, the trainer wants 229",
  causes: "6.4 % of a step waits for storage, 39.1 % for the rest of the pipeline",
  when: "All through the run; no gap is longer than 0.3 s",
  bytes: "56.3 % of what is read is not wanted",
  requests: "459 reads, 96.9 % below 128 KiB",
  machine: "No: for 95.8 % of the run some task waited for a core",
  trust: "Recording took 3.0 % of the machine; 97 events were lost",
  operators: "storage_latency holds the pipeline; decompress uses most CPU (33.4 %)",
  stacks: "decompress is 33.4 % of the time on a core",
  environment: "27 of 38 probes work",
};

function shape(stages, operatorsEach, branched) {
  const names = Array.from(
    { length: stages },
    (_, i) => ["fetch", "decode", "transform", "batch"][i] ?? `stage_${i}`,
  );
  const operators = names.flatMap((stage, s) =>
    Array.from({ length: operatorsEach }, (_, i) => ({
      stage,
      operator: `${stage}.${["io", "decompress", "hash", "cast"][i] ?? `step_${s}_${i}`}`,
    })),
  );
  const input = (i) =>
    i === 0
      ? []
      : branched && i === 2
        ? []
        : branched && i === 3
          ? [names[1], names[2]]
          : [names[i - 1]];
  return { names, operators, input };
}

// A complete run. options: stages, operators (of each stage), windows, seconds, state, split, branched.
export function makeRun(id, name, options = {}) {
  const {
    stages = 4,
    operators = 4,
    windows = 120,
    seconds = 24.1,
    state = "complete",
    split = true,
    branched = false,
  } = options;
  const next = random(id * 7919);
  const { names, operators: ops, input } = shape(stages, operators, branched);
  const t = Array.from({ length: windows }, (_, i) => (i * seconds) / windows);
  const d = t.map(() => seconds / windows);
  const around = (mean, spread) =>
    t.map(() => Number(Math.min(1, Math.max(0, mean + (next() - 0.5) * spread)).toFixed(3)));
  const busyMean = (i) => (i === 0 ? 0.98 : 0.4 / i);
  const course = {
    schema: "headrace.course/1",
    full: [0, seconds],
    from: 0,
    to: seconds,
    t,
    d,
    stages: names.map((stage, i) => {
      const busy = around(busyMean(i), 0.1);
      return {
        name: stage,
        busy,
        c: split ? busy.map((v) => Number((v * (i === 0 ? 0.1 : 0.9)).toFixed(3))) : null,
        b: split ? busy.map((v) => Number((v * (i === 0 ? 0.85 : 0.05)).toFixed(3))) : null,
        q: split ? busy.map((v) => Number((v * 0.05).toFixed(3))) : null,
        wi: busy.map((v) => Number((1 - v).toFixed(3))),
        wo: busy.map(() => 0),
        threads: busy.map(() => 1),
      };
    }),
    queues: names.map((stage, i) => ({
      name: `${stage}.queue`,
      producer: stage,
      consumer: names[i + 1] ?? "trainer",
      capacity: 4,
      fill: around(0.05, 0.1),
      full: around(0.01, 0.02),
      empty: around(0.9, 0.1),
    })),
    steps: {
      count: t.map(() => 25),
      rows: around(0.7, 0.3).map((v) => Math.round(v * 16000)),
      wait: around(0.45, 0.1).map((v, i) => v * d[i]),
      compute: around(0.54, 0.05).map((v, i) => v * d[i]),
      p50: t.map(() => 0.004),
      p99: around(0.02, 0.01),
    },
    phases: [
      { phase: "start", from: 0, to: seconds * 0.05 },
      { phase: "steady", from: seconds * 0.05, to: seconds },
    ],
    marks: [{ at: seconds / 2, text: "epoch 2" }],
  };
  const report = {
    schema: "headrace.report/1",
    run: {
      id,
      name,
      state,
      program: "rm1",
      pid: 4711,
      pipeline: "demo/demo.toml",
      started_seconds: 1795400000 + id * 60,
      duration_seconds: seconds,
      accounting_level: split ? 3 : 1,
      hostname: "vm",
      kernel: "Linux 6.1",
      cpu_model: "A processor",
      headrace_version: "0.1.0",
    },
    page: {
      badge: "HIGHLY input-bound",
      severity: "high",
      verdict: "The trainer waited 45.4 % of each step [44.3, 46.2] (HIGHLY means over 20 %).",
      conditional: false,
      conditions: [
        "BUSY MACHINE: other programs use 1.5 of 2 cores. These figures hold for that load only.",
      ],
      lines: [
        {
          label: "limit",
          text: "fetch, operator storage_latency (probability > 0.99)",
          command: false,
        },
        {
          label: "why",
          text: "fetch can deliver 129 batches/s with 1 thread; CPU cores could do 414 batches/s, the trainer could take 229 batches/s. Measured: 125 batches/s.",
          command: false,
        },
        {
          label: "gpu",
          text: "gpu0 ran kernels in 41.2 % of the time in which the trainer did not wait.",
          command: false,
        },
        {
          label: "fix",
          text: "fetch threads 1 -> 2: +84 % [68, 89] predicted, +3.20 MiB memory",
          command: false,
        },
        { label: "", text: `headrace apply ${id}`, command: true },
        {
          label: "next",
          text: "the trainer will limit it, then fetch at a rate 13 % higher",
          command: false,
        },
        {
          label: "cost",
          text: "recording took 3.0 % of the machine; 97 events lost",
          command: false,
        },
        { label: "more", text: `headrace report ${id} --full`, command: true },
      ],
    },
    cards: cardsOf(ANSWERS, id),
    pipeline: {
      stages: names.map((stage, i) => ({
        name: stage,
        threads: 1,
        max_threads: 1,
        c: split ? busyMean(i) * 0.5 : null,
        b: split ? busyMean(i) * 0.4 : null,
        q: split ? busyMean(i) * 0.1 : null,
        wi: 1 - busyMean(i),
        wo: 0,
        busy: busyMean(i),
        bound_batches_per_second: 129 * (i + 1),
        limit: i === 0,
        input: input(i),
      })),
      queues: course.queues.map(({ name: queue, producer, consumer, capacity }) => ({
        name: queue,
        producer,
        consumer,
        capacity,
        fill: 0.05,
        full: 0.01,
        empty: 0.93,
      })),
      trainer: {
        wait_ratio: 0.454,
        takes_batches_per_second: 124.5,
        wants_batches_per_second: 228.6,
        limit: false,
      },
    },
    questions: [
      { title: "Stages of this run", sql: `SELECT * FROM stage_summary WHERE run_id = ${id}` },
      {
        title: "Slowest operators",
        sql: `SELECT operator, busy_ns FROM operator_summary WHERE run_id = ${id} ORDER BY 2 DESC`,
      },
    ],
    verdict: {
      state: "limited",
      grade: "high",
      stall_ratio: 0.454,
      stall_ratio_low: 0.443,
      stall_ratio_high: 0.462,
      limit: { name: "fetch", kind: "stage", operator: ops[0].operator, probability: 1 },
      observed: { batches_per_second: 124.5, rows_per_second: 63740 },
      predicted: {
        batches_per_second: 228.6,
        batches_per_second_low: 209.4,
        batches_per_second_high: 235.4,
        gain_ratio: 0.8365,
        gain_ratio_low: 0.682,
        gain_ratio_high: 0.891,
      },
    },
    resource_ladder: [
      ...names.map((stage, i) => ({
        resource: `stage ${stage} (1 thread)`,
        attainable_batches_per_second: 129 * (i + 1),
        attainable_batches_per_second_low: 124 * (i + 1),
        attainable_batches_per_second_high: 133 * (i + 1),
        used_ratio: 0.97 / (i + 1),
        binding: i === 0 ? "<- binds" : "",
        kind: "stage",
        note: "",
      })),
      {
        resource: "trainer",
        attainable_batches_per_second: 228.6,
        attainable_batches_per_second_low: 221,
        attainable_batches_per_second_high: 235,
        used_ratio: 0.54,
        binding: "",
        kind: "consumer",
        note: "",
      },
      {
        resource: "memory bandwidth",
        attainable_batches_per_second: null,
        attainable_batches_per_second_unavailable:
          "this machine was not calibrated: headrace doctor --calibrate",
        used_ratio: null,
        binding: "",
        kind: "memory_bandwidth",
        note: "",
      },
    ],
    stall_causes: [
      {
        case: "as recorded",
        batches_per_second: 124.5,
        stall_ratio: 0.454,
        cause: "storage",
        step_ratio: 0.064,
      },
      {
        case: "storage at no cost",
        batches_per_second: 133,
        stall_ratio: 0.42,
        cause: "the rest of the pipeline",
        step_ratio: 0.391,
      },
      {
        case: "all data ready",
        batches_per_second: 228.6,
        stall_ratio: 0,
        cause: "nothing: it computes",
        step_ratio: 0.545,
      },
    ],
    steps: [
      {
        steps_count: 2976,
        rows_count: 1524000,
        wait_seconds: 0.00367,
        compute_seconds: 0.00438,
        step_p50_seconds: 0.00407,
        step_p99_seconds: 0.0228,
      },
    ],
    bytes: [
      {
        border: "stored (whole stripes)",
        bytes_per_row: 2207,
        told_by: "instrumentation fetch.stored",
      },
      { border: "read from the storage", bytes_per_row: 1870, told_by: "" },
      { border: "of it over-read", bytes_per_row: 1053, told_by: "" },
      { border: "tensors", bytes_per_row: 6564, told_by: "" },
    ],
    operators: ops.map(({ stage, operator }, i) => ({
      operator,
      stage,
      threads_count: 1,
      busy_ratio: 0.9 / (i + 1),
      on_cpu_ratio: split ? (i === 0 ? 0.03 : 0.8 / (i + 1)) : null,
      wait_in_ratio: 0,
      wait_out_ratio: 0,
      kind: "io",
      rows_per_second: 63000,
      accounted_batches_per_second: 130 + i * 40,
      visit_ratio: 1,
      bytes_in_per_second: null,
      bytes_out_per_second: 1e8 / (i + 1),
    })),
    time_split: split
      ? ops.map(({ stage, operator }, i) => ({
          operator,
          stage,
          on_cpu_ratio: i === 0 ? 0.03 : 0.9,
          storage_ratio: 0.02,
          network_ratio: 0,
          lock_ratio: 0.01,
          sleep_ratio: i === 0 ? 0.9 : 0,
          other_ratio: 0,
          runnable_ratio: 0.04,
          source: "ebpf",
        }))
      : [],
    cost: {
      collector_cpu_ratio: 0.0086,
      machine_ratio: 0.0303,
      collector_rss_bytes: 55340000,
      events_lost_count: 97,
    },
    measurements: {
      accounting_level: split ? 3 : 1,
      accounting_note: "b and q by eBPF at every switch of a thread, c the rest",
    },
    resources: { cores_budget: 2, cores_bound_by: "affinity" },
    probes: [
      { probe: "CPU stacks", state: "active", reason: "", fix: "", affects: "" },
      {
        probe: "energy",
        state: "unavailable",
        reason: "no RAPL zone in /sys/class/powercap",
        fix: "bare metal",
        affects: "joules a row",
      },
    ],
    probe_cost: [{ probe: "CPU stacks", read_seconds: 0.12, reads_count: 240 }],
    losses: [
      {
        what: "block_io: completions",
        lost_count: 97,
        total_count: null,
        affects: "block IO: latencies of those requests missing",
      },
    ],
  };
  const frames = [
    ...names,
    ...ops.map((each) => each.operator),
    "reader::DecompressOperator::Process",
    "ZSTD_decompress",
    "[libzstd]",
    "do_syscall_64",
  ];
  const at = (frame) => frames.indexOf(frame);
  const stacks = (kind, total) => ({
    kind,
    kinds: ["cpu", "off_cpu", "waiting"],
    total_seconds: total,
    frames,
    roots: names.map((stage, i) => [
      at(stage),
      total / (i + 1),
      ops
        .filter((each) => each.stage === stage)
        .slice(0, 6)
        .map((each, k) => [
          at(each.operator),
          total / (i + 1) / 2 ** (k + 1),
          [
            [
              at("reader::DecompressOperator::Process"),
              total / (i + 1) / 2 ** (k + 1),
              [
                [
                  at("ZSTD_decompress"),
                  total / (i + 1) / 2 ** (k + 2),
                  [[at("[libzstd]"), total / (i + 1) / 2 ** (k + 3), []]],
                ],
              ],
            ],
          ],
        ]),
    ]),
  });
  return {
    report,
    course,
    "operators/course": {
      t,
      d,
      operators: ops.map(({ stage, operator }, i) => ({
        name: operator,
        stage,
        busy: around(0.9 / (i + 1), 0.1),
      })),
    },
    resources: {
      series: [
        {
          key: "process",
          title: "Cores used by the pipeline",
          unit: "cores",
          of: 2,
          t,
          d,
          v: around(0.3, 0.1),
        },
        {
          key: "pressure",
          title: "CPU pressure (some task waits)",
          unit: "ratio",
          of: 1,
          t,
          d,
          v: around(0.95, 0.1),
        },
        {
          key: "rss",
          title: "Memory of the process (RSS)",
          unit: "bytes",
          of: null,
          t,
          d,
          v: around(0.9, 0.05).map((v) => v * 9e7),
        },
        {
          key: "read",
          title: "Device reads",
          unit: "bytes/s",
          of: null,
          t,
          d,
          v: around(0.5, 1).map((v) => v * 1e7),
        },
      ],
    },
    histograms: {
      steps: Array.from({ length: 40 }, (_, i) => [0.0035 * 1.07 ** i, Math.round(1000 / (i + 1))]),
      io: [
        {
          direction: "read",
          size: Array.from({ length: 8 }, (_, i) => [4096 * 2 ** i, 240 >> i]),
          latency: Array.from({ length: 7 }, (_, i) => [32.768e-6 * 2 ** i, 11 * (i + 1)]),
        },
      ],
    },
    stacks: {
      cpu: stacks("cpu", 28),
      off_cpu: stacks("off_cpu", 22),
      waiting: { ...stacks("waiting", 0), roots: [] },
    },
    off_cpu: {
      rows: [
        {
          operator: ops[0].operator,
          stage: names[0],
          cause: "sleep",
          class: "sleep",
          seconds: 21.6,
          count: 720,
        },
        {
          operator: ops[0].operator,
          stage: names[0],
          cause: "block device",
          class: "storage",
          seconds: 0.3,
          count: 40,
        },
      ],
    },
    settings: {
      settings: names.slice(0, 3).map((stage) => ({
        key: `${stage}.parallelism`,
        title: `${stage} threads`,
        unit: "threads",
        value: 1,
        min: 1,
        max: 8,
      })),
    },
  };
}

// What the server's model would say; a rule of the thumb here, so that sliders have an answer.
export function whatIf(run, body) {
  const values = body.best ? { "fetch.parallelism": 2 } : (body.set ?? {});
  const limits = run.report.pipeline.stages.map((stage) => ({
    name: stage.name,
    kind: "stage",
    batches_per_second: stage.bound_batches_per_second * (values[`${stage.name}.parallelism`] ?? 1),
  }));
  limits.push({ name: "trainer", kind: "consumer", batches_per_second: 228.6 });
  const least = limits.reduce((a, b) => (b.batches_per_second < a.batches_per_second ? b : a));
  const rate = Math.min(least.batches_per_second, 228.6) * 0.97;
  return {
    schema: "headrace.what_if/1",
    run: run.report.run.id,
    now: { batches_per_second: 124.5 },
    predicted: { batches_per_second: rate, low: rate * 0.92, high: rate * 1.03 },
    gain_ratio: rate / 124.5 - 1,
    gain_interval: {
      low: (rate * 0.92) / 124.5 - 1,
      high: (rate * 1.03) / 124.5 - 1,
      level_ratio: 0.9,
    },
    limited_by: least,
    limits,
    set: Object.fromEntries(
      run.settings.settings.map((each) => [each.key, values[each.key] ?? each.value]),
    ),
    text: `With these settings ${least.name} would limit it.`,
    command: Object.keys(values).length
      ? "headrace compare demo/demo.toml --a fetch.parallelism=1 --b fetch.parallelism=2"
      : "",
  };
}

// A process that nobody instrumented: the first page, and nothing that needs operators.
export function makeOutside(id, name) {
  const run = makeRun(id, name);
  const { report } = run;
  for (const key of [
    "pipeline",
    "resource_ladder",
    "stall_causes",
    "steps",
    "bytes",
    "operators",
    "time_split",
    "verdict",
    "probe_cost",
  ])
    delete report[key];
  report.page.lines = [
    {
      label: "limit",
      text: "the workers (probability > 0.99): 2 processes pt_data_worker",
      command: false,
    },
  ];
  report.cards = cardsOf(
    { machine: ANSWERS.machine, trust: ANSWERS.trust, environment: ANSWERS.environment },
    id,
  );
  report.threads = [
    {
      group: "pt_data_worker (main)",
      role: "producer",
      on_cpu_ratio: 0.96,
      runnable_ratio: 0.01,
      storage_ratio: 0,
      network_ratio: 0,
      lock_ratio: null,
    },
  ];
  return {
    report,
    resources: run.resources,
    off_cpu: { rows: [] },
    settings: { settings: [] },
    stacks: { cpu: { ...run.stacks.waiting, kind: "cpu" } },
    histograms: { steps: null, io: null },
  };
}

// Every probe unavailable: what is left is what the program itself says.
export function makeBlind(id, name) {
  const run = makeRun(id, name, { split: false });
  const { report } = run;
  report.probes = Array.from({ length: 38 }, (_, i) => ({
    probe: `probe ${i}`,
    state: "unavailable",
    reason: "bpf() failed: operation not permitted",
    fix: "run it with CAP_BPF",
    affects: "off-CPU time",
  }));
  report.cards = {
    ...report.cards,
    ...cardsOf({ ...ANSWERS, requests: undefined, machine: undefined, stacks: undefined }, id),
  };
  report.cost = {
    collector_cpu_ratio: null,
    machine_ratio: null,
    collector_rss_bytes: null,
    events_lost_count: 0,
  };
  return {
    ...run,
    resources: { series: [] },
    histograms: { steps: run.histograms.steps, io: [] },
    stacks: { cpu: run.stacks.waiting },
  };
}

const EVIL = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;

// Names as a file or another process may bring them.
export function makeHostile(id) {
  const run = JSON.parse(
    JSON.stringify(makeRun(id, "plain"))
      .replace(/fetch\.io/g, "OPERATOR")
      .replace(/"plain"/g, '"NAME"')
      .replace(/"(fetch|decode)"/g, '"$1 STAGE"'),
  );
  const long = "x".repeat(4000);
  const text = JSON.stringify(run)
    .replace(/OPERATOR/g, JSON.stringify(`javascript:alert(1) ${EVIL}`).slice(1, -1))
    .replace(/NAME/g, JSON.stringify(`${EVIL} \u202e\u0000\u001b[31m ${long}`).slice(1, -1))
    .replace(/STAGE/g, JSON.stringify(`"'><b>${"y".repeat(200)}`).slice(1, -1));
  const hostile = JSON.parse(text);
  hostile.report.page.verdict += ` ${EVIL} ${long}`;
  hostile.report.page.lines.push({ label: EVIL, text: EVIL, command: true });
  hostile.report.cards.pipeline.answer = EVIL + long;
  return hostile;
}

// A run of which the newest part is missing: nulls and gaps everywhere a number may be unknown.
export function makeGappy(id) {
  const run = makeRun(id, "gaps");
  const holes = (values) => values.map((value, i) => (i % 7 === 0 ? null : value));
  for (const stage of run.course.stages)
    for (const key of ["busy", "c", "b", "q", "wi", "wo"]) stage[key] = holes(stage[key]);
  for (const queue of run.course.queues)
    for (const key of ["fill", "full", "empty"]) queue[key] = holes(queue[key]);
  for (const key of Object.keys(run.course.steps))
    run.course.steps[key] = holes(run.course.steps[key]);
  run.course.t.splice(40, 10);
  run.course.d.splice(40, 10);
  for (const stage of run.course.stages)
    for (const key of ["busy", "c", "b", "q", "wi", "wo", "threads"]) stage[key].splice(40, 10);
  for (const queue of run.course.queues)
    for (const key of ["fill", "full", "empty"]) queue[key].splice(40, 10);
  for (const key of Object.keys(run.course.steps)) run.course.steps[key].splice(40, 10);
  for (const row of run.report.resource_ladder) row.attainable_batches_per_second_low = null;
  run.report.verdict.predicted = undefined;
  run.report.pipeline.trainer = null;
  run.report.stall_causes[1].batches_per_second = null;
  for (const stage of run.report.pipeline.stages)
    Object.assign(stage, {
      threads: null,
      busy: null,
      c: null,
      b: null,
      q: null,
      wo: null,
      bound_batches_per_second: null,
    });
  return run;
}

export function makeComparison(id, a, b) {
  const metric = (key, unit, change, share = false) => ({
    metric: key,
    unit,
    higher_is_better: key === "rows_per_s",
    change_is: share ? "difference" : "ratio_less_1",
    a_median: 1262,
    b_median: 1262 * (1 + change),
    change,
    change_low: change - 0.01,
    change_high: change + 0.01,
    p: 0.001,
    p_holm: 0.003,
    units_count: 12,
    verdict: change > 0 ? "better" : "worse",
    word: change > 0 ? "faster" : "slower",
  });
  const samples = (base, first) =>
    Array.from({ length: 12 }, (_, i) => ({
      run: first + i,
      rows_per_s: base + (i % 5) * 6,
      wait_ratio: 0.4 - base / 1e5 + i * 1e-4,
      cpu_s_per_row: 1.42e-4,
      left_out: i === 11 ? "outlier" : undefined,
    }));
  return {
    schema: "headrace.compare/1",
    comparison: id,
    name: "decode",
    verdict: "faster",
    word: "faster",
    unit: "pair",
    units_count: 12,
    noise: 0.015,
    metrics: [
      metric("rows_per_s", "rows/s", 0.799),
      metric("wait_ratio", "ratio", -0.318, true),
      metric("peak_rss_bytes", "bytes", 0.041),
      {
        ...metric("read_bytes_per_row", "bytes", 0),
        change: null,
        change_low: null,
        change_high: null,
        reason: "run 3 has no read per row: not counted",
      },
    ],
    notes: {
      wall_s: 250,
      repeat: "headrace compare demo.toml --a decode.parallelism=1 --b decode.parallelism=2",
      end: "ended after 12 pairs",
      forced: false,
      differences: [],
      same: [],
      outliers: ["run 12: another program"],
      machine: "same machine",
      why: "decode has 2 threads instead of 1 (+81 %)",
      gates: [{ gate: "rows_per_s<-3%", state: "passes", why: "+80.2 %" }],
    },
    attribution: {
      attribution_parts: [
        {
          name: "threads of decode",
          kind: "threads",
          cpu_a_seconds: null,
          cpu_b_seconds: null,
          cpu_change_ratio: null,
          throughput_share_ratio: 0.81,
        },
        {
          name: "decompress",
          kind: "operator",
          cpu_a_seconds: 1e-4,
          cpu_b_seconds: 0.99e-4,
          cpu_change_ratio: -0.01,
          throughput_share_ratio: -0.006,
        },
      ],
    },
    a: { label: "decode.parallelism=1", what: "decode.parallelism=1", samples: samples(1262, a) },
    b: { label: "decode.parallelism=2", what: "decode.parallelism=2", samples: samples(2272, b) },
  };
}

// A comparison that was interrupted before it had a result.
export function makeUnfinished(id) {
  return {
    summary: {
      id,
      title: "queues",
      a: "decode.queue=4",
      b: "decode.queue=8",
      pairs: 0,
      verdict: "",
      state: "interrupted",
      started_seconds: 1795400000,
      duration_seconds: null,
    },
    made_by: [
      { pair: 1, side: "A", run: 30, left_out: "" },
      { pair: 1, side: "B", run: null, left_out: "interrupted" },
    ],
  };
}
