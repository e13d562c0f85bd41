#!/usr/bin/env python3
"""Bench B2: what headrace says of pipelines that really run, against running them again as they were changed.

Draws pipelines of synthetic operators and of the table reader from a seed, records each once, and asks of that recording alone
  - what limits it (`report`), judged by intervention: each row relieved alone, the gains measured;
  - the rate at three other settings, at least one knob twofold (`plan --what-if`), judged by running them.
Prints the trials as lines for `accuracy render` (docs/accuracy.md).

usage: real.py HEADRACE [--count N] [--first SEED] [--seconds S] [--tables FOLDER] [--kind KIND] [--beside CORES] > FILE
  --beside CORES: all of it beside a neighbour that computes on so many cores (1.5); the lines are of another family
exit: 0 when all trials were made (gates are judged by `accuracy`), 1 when a pipeline failed
Wants a machine that does nothing else: a pipeline that gets fewer cores than it had is another pipeline. Trials during which other
processes used more than a quarter of a core are measured again, and left out if that does not help; the page counts them.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from neighbour import Neighbour  # noqa: E402
from pipelines_truth import must, rows_of  # noqa: E402

OTHERS_LIMIT = 0.25
ATTEMPTS = 2
FULL, CLEAR = 1.8, 0.10
KINDS = ["cpu", "blocked", "lock", "device", "cores", "consumer", "order", "balanced"]
READER_KINDS = ["reader-stage", "reader-device", "reader-consumer", "reader-cores", "reader-any"]
START_NS = 500_000_000  # of a run, until its queues are as full as they will be


class Busy(Exception):
    pass


def steady_rate(headrace, db, run_name):
    """Batches per second between the start and the last window: at its end a run hands out what its queues hold."""
    windows = rows_of(headrace, db, "SELECT start_ns, s.duration_ns, steps_count FROM step_interval s JOIN run_summary USING "
                                    f"(run_id) WHERE name = '{run_name}' ORDER BY start_ns")
    steady = [w for w in windows[:-1] if w["start_ns"] >= START_NS]
    if not steady:
        raise RuntimeError(f"{run_name}: no steady windows among {len(windows)}")
    return sum(w["steps_count"] for w in steady) / (sum(w["duration_ns"] for w in steady) / 1e9)


def fused(text):
    """The reader's pipeline with all that computes in one stage, so that one thread can be what limits."""
    head, _, rest = text.partition("[[stage]]")
    tail = rest[rest.index("[consumer]"):]
    stages = ('[[stage]]\nname = "fetch"\noperators = ["fetch"]\nparallelism = 1\nqueue = 4\n\n[[stage]]\nname = "work"\n'
              'operators = ["decompress", "decode", "extract", "transform", "batch", "tensorize"]\nparallelism = 1\nqueue = 4\n\n')
    return head + stages + tail


class Pipeline:
    """A text with places to change: knobs (STAGE.parallelism, STAGE.queue), and costs by which rows are relieved."""

    def __init__(self, kind, folder, name):
        self.kind, self.folder, self.name = kind, folder, name
        self.stages = []   # name, operator text with {cost}, cost, unit, threads, queue, the shared thing it holds
        self.step_ms, self.cores, self.order, self.base = 0.0, 2, "any", None
        self.sets = []     # of a table's pipeline

    def text(self, costs=None, step=None):
        costs = costs or {}
        lines = [f'pipeline = {{ name = "{self.name}", order = "{self.order}" }}',
                 'source = { synthetic = { rows = 64, bytes = "64KiB" }, epochs = 0 }',
                 f'consumer = {{ step = "{step or self.step_ms:.3f}ms" }}', "stage = ["]
        for s in self.stages:
            cost = s["cost"] * costs.get(s["name"], 1) * costs.get(s["shared"], 1)
            most = ", max_parallelism = 1" if s["sequential"] else ""
            lines.append(f'  {{ name = "{s["name"]}", operators = [{s["operator"].format(cost=f"{cost:.4f}")}], '
                         f'parallelism = {s["threads"]}, queue = {s["queue"]}{most} }},')
        return "\n".join(lines + ["]"]) + "\n"

    def write(self, label, **changes):
        path = self.folder / f"{self.name}.{label}.toml"
        path.write_text(self.text(**changes))
        return path

    def batch_ms(self, kinds):
        return sum(s["cost"] for s in self.stages if s["what"] in kinds)


def draw_synthetic(kind, seed, folder):
    dice = random.Random(seed)
    p = Pipeline(kind, folder, f"p{seed}")
    count = dice.randint(2, 5)
    planted = dice.randrange(count)
    cv = dice.choice([0, 0, 0.3, 0.6])
    vary = f", cv = {cv}" if cv else ""
    sleeps = '{{ sleep = "{cost}ms"' + vary + " }}"
    spins = '{{ spin = "{cost}ms"' + vary + " }}"
    for i in range(count):
        threads = dice.choice([1, 1, 2, 3])
        what = dice.choice(["cpu", "blocked"])
        cost = dice.uniform(0.15, 0.5) if what == "cpu" else threads * dice.uniform(0.5, 2.5)
        p.stages.append({"name": f"s{i}", "operator": spins if what == "cpu" else sleeps, "what": what, "cost": cost,
                         "threads": threads, "queue": dice.choice([2, 4, 8, 16]), "shared": "", "sequential": False})
    limit = p.stages[planted]
    rate_ms = dice.uniform(5, 9)  # a batch of what limits
    p.step_ms = dice.uniform(0.1, 0.5) * rate_ms
    if kind == "cpu":
        limit.update(what="cpu", operator=spins, threads=1, cost=rate_ms, sequential=dice.random() < 0.3)
    elif kind == "blocked":
        limit.update(what="blocked", operator=sleeps, threads=dice.choice([1, 2, 4]), sequential=False)
        limit["cost"] = rate_ms * limit["threads"]
    elif kind == "lock":
        limit.update(what="blocked", shared="table", threads=dice.choice([2, 3]), cost=rate_ms,
                     operator='{{ lock = "{cost}ms", lock_name = "table", hold = "sleep" }}')
    elif kind == "device":
        limit.update(what="blocked", shared="disk", threads=dice.choice([2, 4]), cost=rate_ms * 100,
                     operator='{{ read = "{cost}KiB", rate = "102400KB/s", device = "disk" }}')
    elif kind == "cores":
        p.cores = 1
        for s in p.stages:
            s.update(what="cpu", operator=spins, threads=dice.choice([2, 3]), cost=dice.uniform(0.6, 1.6) * rate_ms / count)
    elif kind == "consumer":
        p.step_ms = rate_ms * 1.3
    elif kind == "order":
        p.order = "file"
        limit.update(what="blocked", threads=4, queue=dice.choice([2, 4]),
                     operator='{{ sleep = "{cost}ms", cv = 1.0 }}', cost=rate_ms * 4)
    elif kind == "balanced":
        other = p.stages[(planted + 1) % count]
        for s in (limit, other):
            s.update(what="blocked", operator=sleeps, threads=1, cost=rate_ms)
    return p


def draw_reader(kind, seed, folder, tables, workload):
    dice = random.Random(seed)
    p = Pipeline(kind, folder, f"{workload}-{seed}")
    p.base = tables / workload / "pipeline.toml"
    p.cores = 1 if kind == "reader-cores" else 2
    threads = {"fetch": 1, "decode": 1, "transform": 1, "batch": 1}
    if kind == "reader-cores":
        threads.update(decode=2, transform=2)
    if kind == "reader-any":
        threads.update(decode=dice.choice([1, 2]), transform=dice.choice([1, 2]))
    if kind == "reader-stage":
        text = fused(p.base.read_text())
        p.base = tables / workload / "fused.toml"
        p.base.write_text(text)
        threads = {"fetch": 1, "work": 1}
    p.stages = [{"name": n, "threads": t, "queue": dice.choice([2, 4, 8]), "sequential": False, "shared": "", "cost": 1,
                 "what": "reader"} for n, t in threads.items()]
    p.sets = ["source.epochs=0"]
    if kind == "reader-device":
        p.bandwidth = dice.uniform(60, 100)
    if kind == "reader-consumer":
        p.step_ms = dice.uniform(5, 9)
    return p


class Runner:
    def __init__(self, headrace, seconds, folder, beside=0.0):
        self.headrace, self.seconds, self.folder, self.beside = headrace, seconds, folder, beside
        self.family = "beside" if beside else "real"
        self.others, self.own = 0.0, 0.0

    def run(self, p, label, knobs=(), costs=None, step=None, cores=None, seconds=None):
        """Runs and records; the rate."""
        db = self.folder / f"{p.name}.db"
        sets = list(p.sets) + [f"{name}={value}" for name, value in knobs]
        if p.base is None:
            path = p.write(label, costs=costs or {}, step=step)
        else:
            path = p.base
            named = {name for name, _ in knobs}
            for s in p.stages:
                for knob, value in (("parallelism", s["threads"]), ("queue", s["queue"])):
                    if f"{s['name']}.{knob}" not in named:
                        sets.append(f"{s['name']}.{knob}={value}")
            if p.step_ms or step:
                sets.append(f"consumer.step={step or p.step_ms:.3f}ms")
            if p.kind == "reader-device":
                bandwidth = p.bandwidth / (costs or {}).get("source.throttle", 1)
                sets.append(f"source.throttle.bandwidth={bandwidth * 1e6:.0f}B/s")
        command = ["taskset", "-c", "0" if (cores or p.cores) == 1 else "0,1", self.headrace, "run", path, "--db", db, "--name",
                   label, "--duration", f"{seconds or self.seconds}s", "--quiet"]
        for word in sets:
            command += ["--set", word]
        must(command)
        host = {r["metric"]: r for r in rows_of(self.headrace, db, "SELECT metric, mean_value, last_value, duration_ns FROM "
                "host_summary JOIN run_summary USING (run_id) WHERE name = '" + label + "' AND metric IN ('host_busy_cores', "
                "'process_cpu_ns')")}
        if "host_busy_cores" in host and "process_cpu_ns" in host:
            self.own = host["process_cpu_ns"]["last_value"] / host["process_cpu_ns"]["duration_ns"]
            self.others = max(self.others, host["host_busy_cores"]["mean_value"] - self.own)
        return steady_rate(self.headrace, db, label)

    def ask(self, p, *words):
        return json.loads(must([self.headrace, *words, "--db", self.folder / f"{p.name}.db"]))


def reliefs(p):
    """Of every row: its name as `report` gives it, and what to change to relieve it."""
    for s in p.stages:
        if s["sequential"]:
            yield s["name"], {"costs": {s["name"]: 0.8}}
        else:
            yield s["name"], {"knobs": [(f"{s['name']}.parallelism", s["threads"] + max(1, s["threads"] // 4))]}
    if p.step_ms:
        yield "consumer", {"step": 0.8 * p.step_ms}
    for shared in sorted({s["shared"] for s in p.stages} - {""}):
        yield shared, {"costs": {shared: 0.8}}
    if p.kind == "reader-device":
        yield "throttle", {"costs": {"source.throttle": 0.8}}
    # Two cores are all there are: what they limit is judged with one.
    if p.cores == 1:
        yield "cores", {"cores": 2}
    if p.order == "file":
        yield "order", {"knobs": [(f"{s['name']}.queue", 4 * s["queue"]) for s in p.stages]}


def changed(p, dice):
    """Settings of which at least one knob is twofold."""
    while True:
        knobs, twofold = [], False
        for s in p.stages:
            if not s["sequential"] and dice.random() < 0.6:
                threads = max(1, min(12, round(s["threads"] * dice.choice([0.5, 2, 2, 4]))))
                if threads != s["threads"]:
                    knobs.append((f"{s['name']}.parallelism", threads))
                    twofold |= threads >= 2 * s["threads"] or 2 * threads <= s["threads"]
            if dice.random() < 0.2:
                knobs.append((f"{s['name']}.queue", 4 * s["queue"]))
                twofold = True
        if twofold:
            return knobs


def judge(runner, p, seed, lines):
    runner.others = 0.0
    dice = random.Random(seed * 7 + 1)
    now = runner.run(p, "base", seconds=1.5 * runner.seconds)
    full = p.cores == 2 and runner.own > FULL
    report = runner.ask(p, "report", "base", "--format", "json")
    lines_here = []
    changes = [changed(p, dice) for _ in range(3)]
    # All are predicted before any of them is in the database: from one run alone.
    predictions = [runner.ask(p, "plan", "base", "--json", "--what-if", *[f"{k}={v}" for k, v in knobs]) for knobs in changes]
    for i, (knobs, said) in enumerate(zip(changes, predictions)):
        observed = runner.run(p, f"changed{i}", knobs)
        lines_here.append("\t".join(map(str, [
            runner.family + "-predict", seed, p.kind, " ".join(f"{k}={v}" for k, v in knobs), 2, f"{now:.6g}",
            f"{said['predicted']['batches_per_second']:.6g}", f"{said['predicted']['low']:.6g}",
            f"{said['predicted']['high']:.6g}", f"{observed:.6g}", said["limited_by"]["kind"]])))
    gains = {}
    for i, (row, change) in enumerate(reliefs(p)):
        gains[row] = runner.run(p, f"relief{i}", **change)
    again = runner.run(p, "again")
    middle = (now + again) / 2
    gains = {row: rate / middle - 1 for row, rate in gains.items()}
    best = max(gains, key=gains.get)
    findings = report["findings"]
    name, second = findings[0]["name"], findings[1]["name"]
    probability = findings[0]["probability"]
    right = [int(n in gains and gains[n] >= gains[best] / 2) for n in (name, second)]
    # Where both cores are used up and nothing else gains, they are what limits, but no third one can show it.
    if full and gains[best] < CLEAR and not runner.beside:
        lines_here.append("real-left\tfull")
    else:
        lines_here.append("\t".join(map(str, [runner.family + "-name", seed, p.kind, report["verdict"]["state"].replace(" ", "_"), name, second, 2, f"{probability:.4f}",
                                              best, f"{gains[best]:.4f}", *right])))
    if runner.others > OTHERS_LIMIT and not runner.beside:
        raise Busy(f"others used {runner.others:.2f} cores")
    lines += lines_here
    shown = ", ".join(f"{row} {gain:+.0%}" for row, gain in sorted(gains.items(), key=lambda g: -g[1])[:3])
    print(f"{p.name} {p.kind}: named {name} ({probability:.2f}) then {second}; true {shown}; others {runner.others:.2f}",
          file=sys.stderr, flush=True)
    for line in lines_here[:3]:
        f = line.split("\t")
        print(f"    {f[3]}: predicted {float(f[6]):.1f} [{f[7]}, {f[8]}], observed {float(f[9]):.1f} "
              f"({float(f[6]) / float(f[9]) - 1:+.1%})", file=sys.stderr, flush=True)


def tables_in(headrace, folder):
    for workload in ("rm1", "rm2", "rm3"):
        if not (folder / workload / "pipeline.toml").exists():
            must([headrace, "generate", workload, "-o", folder / workload, "--rows", "20000"])
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=42)
    parser.add_argument("--first", type=int, default=72000, help="the first seed; below 70000: for fitting; 70000 to 70041 were looked at")
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--tables", type=pathlib.Path, help="keep the reader's tables here")
    parser.add_argument("--only", default="", help="kinds that contain this")
    parser.add_argument("--kind", choices=KINDS, help="all of them synthetic, and of this kind")
    parser.add_argument("--beside", type=float, default=0.0, help="cores that a neighbour computes on meanwhile")
    options = parser.parse_args()
    headrace = options.headrace.resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, Neighbour(options.beside):
        folder = pathlib.Path(scratch)
        tables = tables_in(headrace, options.tables or folder)
        for seed in range(options.first, options.first + options.count):
            # Two of three are synthetic, where bottlenecks are what they were made to be; the third reads a table.
            at = seed - options.first
            reads = at % 3 == 2 and not options.kind
            kind = READER_KINDS[at // 3 % len(READER_KINDS)] if reads else options.kind or KINDS[(at - at // 3) % len(KINDS)]
            if options.only not in kind:
                continue
            workload = ["rm1", "rm2", "rm3"][at // 3 % 3]
            p = draw_reader(kind, seed, folder, tables, workload) if reads else draw_synthetic(kind, seed, folder)
            lines = []
            for attempt in range(ATTEMPTS):
                runner = Runner(headrace, options.seconds, folder, options.beside)
                try:
                    (folder / f"{p.name}.db").unlink(missing_ok=True)
                    judge(runner, p, seed, lines)
                    break
                except Busy as problem:
                    last = attempt + 1 == ATTEMPTS
                    print(f"{p.name} {kind}: {problem}; {'left out' if last else 'measured again'}", file=sys.stderr, flush=True)
                    if last:
                        print("real-left\tbusy", flush=True)
                except (RuntimeError, KeyError, json.JSONDecodeError) as problem:
                    failed += 1
                    print(f"{p.name} {kind}: failed: {problem!r}", file=sys.stderr, flush=True)
                    break
            for line in lines:
                print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
