// What the API of `headrace serve` answers. Only shapes: the meaning of each field is in the
// documentation of the API. Everything that a run may lack is optional or null, as a page must
// be readable without it.

export type Figure = number | null;

export interface Store {
  program?: string;
  database: string;
  headrace_version?: string;
  latest: number | null;
  runs_count: number;
}

export interface RunRow {
  id: number;
  name: string;
  tags: string | string[] | null;
  state: string;
  kind: string | null;
  program: string;
  pipeline: string;
  settings: string | null;
  started_seconds: Figure;
  duration_seconds: Figure;
  rows_count: Figure;
  rows_per_second: Figure;
  stall_ratio: Figure;
  trains?: boolean; // false: nobody computed, so nobody waited
  comparison: number | null;
  comparison_verdict?: string; // of that comparison; empty: it came to none
}

export interface Runs {
  runs: RunRow[];
  next: number | null;
}

export interface TrendRun {
  id: number;
  name: string;
  tags: string;
  version: string;
  started_seconds: Figure;
  rows_per_second: Figure;
}

export interface Trends {
  answer: string; // why there is none, where there is none
  command?: string; // that brings one nearer
  trends: { pipeline: string; settings: string; text: string; runs: TrendRun[] }[];
}

export interface PageLine {
  label: string;
  text: string;
  command: boolean;
}

export interface FirstPage {
  badge: string;
  severity?: string;
  verdict: string;
  conditions: string[];
  lines: PageLine[];
}

export interface CardText {
  question: string;
  answer?: string;
  empty?: string;
  command?: string;
  read?: string[];
  sql?: string;
}

export type Shares = { c: Figure; b: Figure; q: Figure; wi: Figure; wo: Figure; busy: Figure };

export interface StageInPipeline extends Shares {
  name: string;
  threads: Figure;
  bound_batches_per_second: Figure;
  limit: boolean;
  input: string[];
}

export interface QueueInPipeline {
  name: string;
  producer: string;
  consumer: string;
  capacity: Figure;
  fill: Figure;
  full: Figure;
  empty: Figure;
}

export interface Trainer {
  wait_ratio: Figure;
  takes_batches_per_second: Figure;
  wants_batches_per_second: Figure;
  limit: boolean;
}

export interface Pipeline {
  stages: StageInPipeline[];
  queues: QueueInPipeline[];
  trainer: Trainer | null;
}

export interface Rung {
  resource: string;
  attainable_batches_per_second: Figure;
  attainable_batches_per_second_low?: Figure;
  attainable_batches_per_second_high?: Figure;
  attainable_batches_per_second_unavailable?: string;
  used_ratio: Figure;
  binding: string;
  kind: string;
  note: string;
}

export interface StallCause {
  case: string;
  batches_per_second: Figure;
  stall_ratio: Figure;
  cause: string;
  step_ratio: Figure;
}

export interface Operator {
  operator: string;
  stage: string;
  kind?: string;
  threads_count?: Figure;
  busy_ratio: Figure;
  on_cpu_ratio: Figure;
  off_cpu_ratio?: Figure;
  wait_in_ratio?: Figure;
  wait_out_ratio?: Figure;
  rows_per_second?: Figure;
  accounted_batches_per_second?: Figure;
  visit_ratio?: Figure;
  bytes_in_per_second?: Figure;
  bytes_out_per_second?: Figure;
  [key: string]: unknown;
}

export interface TimeSplit {
  wait_ratio: Figure;
  operator: string;
  stage: string;
  on_cpu_ratio: Figure;
  storage_ratio?: Figure;
  network_ratio?: Figure;
  lock_ratio?: Figure;
  sleep_ratio?: Figure;
  other_ratio?: Figure;
  runnable_ratio?: Figure;
  source?: string;
}

export interface Probe {
  probe: string;
  state: string;
  reason?: string;
  fix?: string;
  affects?: string;
}

export interface Loss {
  what: string;
  lost_count: Figure;
  total_count?: Figure;
  affects: string;
}

export interface ThreadGroup {
  group: string;
  role: string;
  on_cpu_ratio: Figure;
  runnable_ratio: Figure;
  [key: string]: unknown;
}

export interface Report {
  run: {
    id: number;
    name: string;
    state: string;
    program?: string;
    pid?: number;
    pipeline?: string;
    started_seconds?: Figure;
    duration_seconds?: Figure;
    accounting_level?: Figure;
    hostname?: string;
    kernel?: string;
    cpu_model?: string;
    headrace_version?: string;
  };
  page?: FirstPage;
  cards?: Record<string, CardText | undefined>;
  pipeline?: Pipeline | null;
  questions?: { title: string; sql: string }[];
  verdict?: {
    state?: string;
    stall_ratio?: Figure;
    stall_ratio_low?: Figure;
    stall_ratio_high?: Figure;
    limit?: { name: string; kind: string; operator?: string; probability?: Figure };
    observed?: { batches_per_second: Figure; rows_per_second: Figure };
    predicted?: {
      batches_per_second: Figure;
      batches_per_second_low?: Figure;
      batches_per_second_high?: Figure;
      gain_ratio?: Figure;
      gain_ratio_low?: Figure;
      gain_ratio_high?: Figure;
    };
  };
  resource_ladder?: Rung[];
  stall_causes?: StallCause[];
  steps?: {
    steps_count?: Figure;
    wait_seconds?: Figure;
    compute_seconds?: Figure;
    step_p50_seconds?: Figure;
    step_p99_seconds?: Figure;
  }[];
  run_phases?: { phase: string; from_seconds: Figure; to_seconds: Figure }[];
  bytes?: { border: string; bytes_per_row: Figure; told_by?: string }[];
  operators?: Operator[];
  time_split?: TimeSplit[];
  threads?: ThreadGroup[];
  cost?: {
    collector_cpu_ratio?: Figure;
    machine_ratio?: Figure;
    collector_rss_bytes?: Figure;
    events_lost_count?: Figure;
  };
  measurements?: { accounting_level?: Figure; accounting_note?: string };
  resources?: { cores_budget?: Figure; cores_bound_by?: string };
  probes?: Probe[];
  probe_cost?: { probe: string; read_seconds: Figure; reads_count: Figure }[];
  losses?: Loss[];
  [key: string]: unknown;
}

export interface StageCourse {
  name: string;
  busy: Figure[];
  c: Figure[] | null;
  b: Figure[] | null;
  q: Figure[] | null;
  wi: Figure[];
  wo: Figure[];
  threads?: Figure[];
}

export interface QueueCourse {
  name: string;
  producer: string;
  consumer: string;
  capacity: Figure;
  fill: Figure[];
  full: Figure[];
  empty: Figure[];
}

export interface StepCourse {
  count: Figure[];
  rows: Figure[];
  wait: Figure[];
  compute: Figure[];
  p50?: Figure[];
  p99?: Figure[];
}

export interface Course {
  full: [number, number];
  from: number;
  to: number;
  t: number[];
  d: number[];
  stages: StageCourse[];
  queues: QueueCourse[];
  steps: StepCourse | null;
  phases: { phase: string; from: number; to: number }[];
  marks: { at: number; text: string }[];
}

export interface OperatorCourse {
  t: number[];
  d: number[];
  operators: { name: string; stage: string; busy: Figure[] }[];
}

export interface Series {
  key: string;
  title: string;
  unit: string;
  of: Figure;
  atEnd?: boolean; // said as it was at the end, not on average
  t: number[];
  d: number[];
  v: Figure[];
}

export interface Resources {
  series: Series[];
}

export type Bucket = [number, number];

export interface Histograms {
  steps: Bucket[] | null;
  io: { direction: string; size: Bucket[] | null; latency: Bucket[] | null }[] | null;
}

export type StackNode = [number, number, StackNode[]?];

export interface Stacks {
  kind: string;
  kinds: string[];
  total_seconds: Figure;
  frames: string[];
  roots: StackNode[];
}

export interface OffCpu {
  rows: {
    operator: string;
    stage: string;
    cause: string;
    class: string;
    seconds: Figure;
    count: Figure;
  }[];
}

// frame, time in this run, time in the other one, what it calls
export type DiffNode = [frame: number, now: number, before: number, children?: DiffNode[]];

export interface StacksDiff {
  card: CardText;
  kind: string;
  kinds: string[];
  of: string; // what the times are for: "1000 rows", or "all" where they are shares
  with: { id: number; name: string };
  now_seconds: Figure;
  before_seconds: Figure;
  frames: string[];
  roots: DiffNode[];
}

export interface Setting {
  key: string;
  title: string;
  unit: string;
  value: number;
  min: number;
  max: number;
}

export interface WhatIf {
  now: { batches_per_second: Figure };
  predicted: { batches_per_second: Figure; low?: Figure; high?: Figure };
  gain_ratio: Figure;
  gain_interval?: { low: Figure; high: Figure };
  limited_by: { name: string; kind?: string };
  limits: { name: string; kind?: string; batches_per_second: Figure }[];
  set: Record<string, number>;
  text?: string;
  command?: string;
}

export interface ComparisonRow {
  id: number;
  title: string;
  a: string;
  b: string;
  pairs: Figure;
  verdict: string;
  started_seconds: Figure;
}

export interface ComparedMetric {
  metric: string;
  unit: string;
  change_is: string;
  higher_is_better: boolean;
  a_median: Figure;
  b_median: Figure;
  change: Figure;
  change_low: Figure;
  change_high: Figure;
  p_holm?: Figure;
  units_count: Figure;
  verdict: string;
  word: string;
  reason?: string;
}

export interface ComparedSample {
  run: number;
  left_out?: string;
  left_out_by?: string;
  [figure: string]: unknown;
}

export interface ComparedSide {
  label: string;
  what: string;
  samples: ComparedSample[];
}

export interface AttributionPart {
  name: string;
  kind: string;
  cpu_a_seconds: Figure;
  cpu_b_seconds: Figure;
  cpu_change_ratio: Figure;
  throughput_share_ratio: Figure;
  throughput_share_ratio_low?: Figure;
  throughput_share_ratio_high?: Figure;
  [key: string]: unknown;
}

export interface Comparison {
  summary?: ComparisonRow & { state?: string };
  made_by?: { pair: number; side: string; run: number | null; left_out: string }[];
  comparison: number | null;
  name: string;
  verdict: string;
  word: string;
  unit: string;
  units_count: Figure;
  metrics: ComparedMetric[];
  noise: Figure;
  notes?: {
    why?: string;
    why_unavailable?: string;
    end?: string;
    repeat?: string;
    machine?: string;
    differences?: string[];
    outliers?: string[];
    gates?: { gate: string; state: string; why: string }[];
  };
  attribution?: { attribution_parts?: AttributionPart[]; [key: string]: unknown } | null;
  a: ComparedSide;
  b: ComparedSide;
  too_few?: string;
}

// Of one stripe: the pieces of the file one after the other. Names are indices into `names`.
export interface LayoutStreams {
  names: string[];
  offset: number[];
  stored: number[];
  area: number[];
  column: number[];
  key: number[];
  streams: number[];
  wanted: number[];
  over: number[];
}

export interface LayoutReads {
  offset: number[];
  bytes: number[];
  wanted: number[];
}

// Stripes in the order of the files; `count` neighbours are one where there are many.
export interface LayoutStripes {
  first: number[];
  count: number[];
  stored: number[];
  rows: number[];
  wanted: number[];
  over: number[];
  reads: number[];
  file: string[];
}

export interface IoLayout {
  card: CardText;
  columns_card?: CardText;
  plan?: {
    gap_bytes: number;
    files_count: number;
    file_bytes: number;
    stripes_count: number;
    known_count: number;
    features_count: number;
    columns_count: number;
    stored_bytes: number;
    wanted_bytes: number;
    over_read_bytes: number;
    reads_count: number;
  };
  stripes?: LayoutStripes;
  detailed?: number[]; // stripes whose streams are known
  stripe?: number; // which of them `streams` and `reads` are of
  streams?: LayoutStreams;
  reads?: LayoutReads;
}

export interface JointHistogram {
  of: string;
  direction: string;
  size: number[];
  latency: number[];
  count: number[];
}

export interface IoLatency {
  card: CardText;
  histograms: JointHistogram[];
}

// A figure with its words, or why it is not known.
export interface SheetValue {
  text?: string;
  value?: Figure;
  reason?: string;
}

export interface SheetFigure {
  key: string;
  name: string;
  here: SheetValue;
  told_by?: string;
  published: Record<string, SheetValue | undefined>; // by model
  source?: string;
  difference?: string;
  why?: string;
}

export interface SheetPart {
  key: string;
  card: CardText;
  figures: SheetFigure[];
}

export interface SheetStage {
  part: string;
  cpu: SheetValue;
  cores: SheetValue;
  cpu_per_row: SheetValue;
  bytes: SheetValue;
  nic: SheetValue;
}

export interface RunCharacterization {
  card: CardText;
  parts?: SheetPart[];
  stages_card?: CardText;
  stages?: SheetStage[];
}

export interface SqlResult {
  columns: string[];
  rows: (string | number | null)[][];
  truncated: boolean;
  elapsed_seconds: number;
}
