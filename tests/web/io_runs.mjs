// What made-up runs say on the pages IO layout and Characterization, of stacks against another run's,
// and of the course of rates.
const READ = ["How it is to be read.", "A second sentence."];

const card = (question, answer, more = {}) => ({
  question,
  answer,
  read: READ,
  sql: "SELECT * FROM layout_stream WHERE run_id = 1",
  ...more,
});

// A stripe of `keys` features, every third wanted, holes between them read over or skipped.
function pieces(keys, at, name) {
  const names = ["index", "data", "none", "", "label", name, "sparse"];
  const out = {
    names,
    offset: [],
    stored: [],
    area: [],
    column: [],
    key: [],
    streams: [],
    wanted: [],
    over: [],
  };
  const reads = { offset: [], bytes: [], wanted: [] };
  let offset = at;
  const add = (stored, area, column, key, wanted, over) => {
    if (key !== "" && !names.includes(key)) names.push(key);
    out.offset.push(offset);
    out.stored.push(stored);
    out.area.push(area);
    out.column.push(column);
    out.key.push(names.indexOf(key));
    out.streams.push(2);
    out.wanted.push(wanted);
    out.over.push(over);
    offset += stored;
  };
  add(4000, 0, 5, "", 0, 0);
  add(4000, 0, 6, "", 0, 0);
  add(900, 1, 4, "", 900, 0);
  for (let i = 0; i < keys; i++) {
    const stored = 200 + ((i * 7919) % 9000);
    const wanted = i % 3 === 0;
    const over = !wanted && i % 2 === 0;
    const from = offset;
    add(stored, 1, i < keys / 2 ? 5 : 6, String(i), wanted ? stored : 0, over ? stored : 0);
    if (!wanted && !over) continue;
    const last = reads.offset.length - 1;
    if (last >= 0 && reads.offset[last] + reads.bytes[last] === from && reads.bytes[last] < 40000) {
      reads.bytes[last] += stored;
      reads.wanted[last] += wanted ? stored : 0;
    } else {
      reads.offset.push(from);
      reads.bytes.push(stored);
      reads.wanted.push(wanted ? stored : 0);
    }
  }
  add(300, 2, 3, "", 0, 0);
  return { streams: out, reads };
}

export function makeIoLayout({ keys = 120, stripes = 9, name = "dense", stripe = 0 } = {}) {
  const { streams, reads } = pieces(keys, 3 + stripe * 1000000, name);
  const sum = (list) => list.reduce((total, value) => total + value, 0);
  const stored = sum(streams.stored);
  const wanted = sum(streams.wanted);
  const over = sum(streams.over);
  const each = (value) => Array.from({ length: stripes }, () => value);
  return {
    schema: "headrace.io_layout/1",
    card: card(
      "What of the file is read?",
      "A pass reads 50.1 % of the stripes' bytes in 12 reads a stripe; 33.2 % of what it reads is not wanted.",
    ),
    columns_card: card(
      "Which columns does it read over?",
      "55.0 % of what it reads over lies in sparse.",
    ),
    plan: {
      gap_bytes: 131072,
      files_count: 2,
      file_bytes: stripes * stored + 5000,
      stripes_count: stripes,
      known_count: stripes,
      features_count: keys / 3,
      columns_count: 1,
      stored_bytes: stripes * stored,
      wanted_bytes: stripes * wanted,
      over_read_bytes: stripes * over,
      reads_count: stripes * reads.offset.length,
    },
    stripes: {
      first: Array.from({ length: stripes }, (_, i) => i),
      count: each(1),
      stored: each(stored),
      rows: each(2048),
      wanted: each(wanted),
      over: each(over),
      reads: each(reads.offset.length),
      file: Array.from({ length: stripes }, (_, i) =>
        i < stripes / 2 ? "part-0.dwrf" : "part-1.dwrf",
      ),
    },
    detailed: [0, 1, 2],
    stripe,
    streams,
    reads,
  };
}

export function makeIoLatency() {
  const size = [];
  const latency = [];
  const count = [];
  for (let s = 12; s <= 20; s++) {
    for (let l = 16; l <= 24; l++) {
      const n = Math.round(3000 * Math.exp(-((s - 12) ** 2) / 9 - (l - s / 2 - 11) ** 2));
      if (n < 1) continue;
      size.push(2 ** s);
      latency.push(2 ** l / 1e9);
      count.push(n);
    }
  }
  return {
    schema: "headrace.io_latency/1",
    card: card(
      "Which requests are slow?",
      "7661 reads of devices: half take less than 262 us; 1.1 % of them take 8.39 ms or more, most often of 64.0 KiB to 128 KiB.",
    ),
    histograms: [{ of: "requests to devices", direction: "read", size, latency, count }],
  };
}

export const NO_IO_LAYOUT = {
  schema: "headrace.io_layout/1",
  card: {
    question: "What of the file is read?",
    empty: "The layout of a table is kept by 'headrace run'. This run has none.",
    command: "headrace run pipeline.toml",
    read: [],
  },
};

export const NO_IO_LATENCY = {
  schema: "headrace.io_latency/1",
  card: {
    question: "Which requests are slow?",
    empty: "Single requests were not timed: bpf() failed.",
    command: "headrace doctor",
    read: [],
  },
  histograms: [],
};

export function makeSheet(name = "rows of one worker (this host)") {
  const value = (text, number) => ({ text, value: number });
  const worker = [
    {
      key: "worker_rows_per_s",
      name,
      here: value("61.2 krows/s [60.1, 62.2]", 61200),
      told_by: "steps of the run, interval by its windows",
      published: { rm1: value("103 krows/s", 103000), rm2: value("111 krows/s", 111000) },
      source: "ISCA'22, table 9 (read)",
      difference: "x0.59 of the published",
      why: "It is limited by the cores, and a row takes 2.1 times the CPU time.",
    },
    {
      key: "nic_ingress_ratio",
      name: "NIC ingress in use",
      here: { reason: "no NIC was modelled: the table is read from this machine" },
      published: {},
    },
  ];
  return {
    schema: "headrace.run_characterization/1",
    card: {
      question: "What limits it as a worker?",
      answer: "It is limited by the cores.",
      read: ["The cores are in use by 98 %.", "Published of rm1: CPU (ISCA'22; read)."],
    },
    parts: [
      {
        key: "worker",
        card: card("What does one worker deliver?", "One worker delivers 61.2 krows/s."),
        figures: worker,
      },
      {
        key: "cost",
        card: card("What do a million rows cost?", "A million rows take 32.1 s of CPU time."),
        figures: [
          { key: "cpu", name: "CPU", here: value("32.1 s", 32.1), told_by: "clock", published: {} },
        ],
      },
      {
        key: "features",
        card: {
          question: "Which features does it have?",
          empty: "'headrace characterize' counts it.",
          command: "headrace characterize TABLE --pipeline demo.toml",
          read: [],
        },
        figures: [],
      },
    ],
    stages_card: card(
      "Which part of the pipeline takes what?",
      "decode takes 45.0 % of the CPU time.",
    ),
    stages: ["fetch", "decode", "transform"].map((part) => ({
      part,
      cpu: value("45.0 %", 0.45),
      cores: value("0.91 cores", 0.91),
      cpu_per_row: value("14.1 us", 1.41e-5),
      bytes: value("1.90 GB/s", 1.9e9),
      nic: { reason: "no NIC was modelled" },
    })),
  };
}

// The tree of a run's stacks against the same with other times.
export function makeStacksDiff(stacks, other, kind) {
  let n = 0;
  const turn = ([frame, time, children]) => {
    const factor = [0.4, 1, 1.8, 0, 1.02, 0.8][n++ % 6];
    const node = [frame, time, time * factor];
    if (children?.length) node.push(children.map(turn));
    return node;
  };
  return {
    schema: "headrace.stacks_diff/1",
    card: card(
      "Which code takes other time than in level 1?",
      "1000 rows take 21 ms on a core, and took 29 ms in level 1. Most changed is decode.decompress: 6 ms less.",
    ),
    kind,
    kinds: ["cpu", "off_cpu"],
    of: "1000 rows",
    with: { id: other, name: "level 1" },
    now_seconds: 0.021,
    before_seconds: 0.029,
    frames: stacks.frames,
    roots: stacks.roots.map(turn),
  };
}

export function makeTrends(id) {
  const runs = Array.from({ length: 14 }, (_, i) => ({
    id,
    name: `nightly ${i}`,
    tags: i === 13 ? "candidate" : "",
    version: i < 6 ? "0.1.0" : i < 13 ? "0.2.0" : "0.3.0-rc1",
    started_seconds: 1795000000 + i * 86400,
    rows_per_second: i === 13 ? 39000 : 61000 + 900 * Math.sin(i),
  }));
  return {
    schema: "headrace.trends/1",
    answer:
      "rm1/pipeline.toml: 39.0 krows/s in the last run: 36.1 % less than the median of the 10 before it.",
    trends: [
      {
        pipeline: "/data/rm1/pipeline.toml",
        settings: "",
        text: "39.0 krows/s in the last run: 36.1 % less than the median of the 10 before it. It is the first of version 0.3.0-rc1 after 0.2.0.",
        runs,
      },
      {
        pipeline: "/data/rm2/pipeline.toml",
        settings: "decode.parallelism=2",
        text: "61.1 krows/s in the last run, as in the 3 before it.",
        runs: runs.slice(0, 4),
      },
    ],
  };
}
