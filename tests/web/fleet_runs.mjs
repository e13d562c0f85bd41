// A job of the preprocessing service as /api/fleet answers it, made up: two ranks, three workers, one
// of which was lost, and one that is slow. `name` may be a hostile one.

const SECOND = 1e9;

const worker = (number, more) => ({
  worker: number,
  run_id: 2 + number,
  host: "vm",
  state: "serving",
  rows_per_second: 4100,
  working_ratio: 0.82,
  idle_ratio: 0.03,
  no_room_ratio: 0.14,
  absent_ratio: 0.01,
  busiest_stage: "decode",
  utilisation_ratio: 0.97,
  straggler: false,
  ...more,
});
const rank = (number, stall) => ({
  rank: number,
  run_id: 10 + number,
  host: "vm",
  stall_ratio: stall,
  rows_per_second: 5200,
  step_p99_ns: stall === null ? null : 0.021 * SECOND,
  slow: stall > 0.4,
});

export function makeFleet(id, name = "ctr") {
  const jobs = [2, 1].map((job_id) => ({
    job_id,
    job: job_id === 2 ? name : "ctr before",
    state: job_id === 2 ? "running" : "complete",
    started_realtime_ns: 1795400000 * SECOND,
    members_count: 6,
  }));
  const job = {
    ...jobs.find((each) => each.job_id === id),
    duration_ns: 600 * SECOND,
    verdict: { decided: true },
    ranks: [rank(0, 0.31), rank(1, 0.46), rank(2, null)],
    workers: [
      worker(0),
      worker(1, { straggler: true, working_ratio: 0.5, absent_ratio: 0.33, rows_per_second: 2100 }),
      worker(2, { state: "lost", host: name }),
    ],
    course: Array.from({ length: 60 }, (_, i) => ({
      start_ns: i * 10 * SECOND,
      duration_ns: 10 * SECOND,
      workers: i === 30 ? null : 2 + (i > 20 ? 1 : 0),
      wanted_count: 3,
      leases_count: 12,
      lost_count: i === 40 ? 2 : 0,
      left_rows_count: 600000 - i * 10000,
    })),
    decisions: [
      { at_ns: 120 * SECOND, from: "2", to: "3", reason: "ranks wait and workers are busy" },
      { at_ns: 180 * SECOND, from: null, to: null, reason: "more would not help" },
    ],
    events: [
      { at_ns: 400 * SECOND, kind: "worker_lost", splits_count: 2, text: `worker 2, ${name}` },
    ],
  };
  const read = ["A bar is the time of one."];
  return {
    schema: "headrace.fleet_page/1",
    jobs,
    job,
    first: {
      badge: "HIGHLY input-bound",
      severity: "high",
      verdict: "Rank 1 waited 46.0 % of its time [45.1, 46.8].",
      conditions: [],
      lines: [
        { label: "limit", text: "workers: 2.9 serve, 5 would be needed", command: false },
        { label: "fix", text: "start 2 more workers", command: false },
        { label: "more", text: "headrace report --fleet ctr --full", command: true },
      ],
    },
    cards: {
      workers: {
        question: "Where does the workers' time go?",
        answer: "71.3 % of it is work; most of the rest waits until ranks take more.",
        read,
      },
      ranks: {
        question: "How long do ranks wait?",
        answer: "Rank 1 waits longest, 46.0 % of its time.",
        read,
      },
      course: {
        question: "How did the job go on?",
        answer: "On average 2.7 workers served; at the end, 3 were wanted.",
        read,
      },
      events: { question: "What happened?", answer: "1 worker was lost with splits." },
    },
  };
}

export const NO_FLEET = {
  schema: "headrace.fleet_page/1",
  jobs: [],
  job: null,
  first: null,
  cards: {
    none: {
      question: "What limits a job?",
      empty: "This file holds no job of the preprocessing service.",
      command: "headrace serve --db headrace-fleet.db",
    },
  },
};
