#!/usr/bin/env python3
"""Attribution on pipelines that really run: one thing is changed in each of workloads/pipelines and of a generated table's pipeline,
both are run in interleaved pairs, and the part that attribution (`accuracy parts`, beside HEADRACE) gives to what was changed is
compared with the whole change. Prints a line for each for `accuracy render` (docs/accuracy.md).

usage: attribution.py HEADRACE [--pairs N] [--seconds S] [--only REGEX] [--pipelines FOLDER] > FILE
exit: 0 when every sum is within 2 % of the change and >= 90 % of it, and of the change in cost, goes to what was changed in >= 90 % of
the pairs, else 1
Wants a machine that does nothing else: pairs during which other programs used more than a quarter of a core are run once more, and
left out if that does not help.
"""
import argparse
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from pipelines_truth import must, rows_of  # noqa: E402

OTHERS_LIMIT, ATTEMPTS = 0.25, 2  # cores that other programs use, from which a pair says little; how often it is run
SUM_LIMIT, SHARE, TRIALS, MOVED, COST_MOVED = 0.02, 0.90, 0.90, 0.05, 0.05

# File, what is replaced by what, the kind of row and its stage or name, the cost that changes. The last ones do not limit.
PLANTED = [
    ("01", "8ms", "5.5ms", "operator", "parse", "cpu"),
    ("02", "6ms", "8ms", "operator", "join", "cpu"),
    ("03", "12ms", "8ms", "operator", "remote", "blocked"),
    ("04", "parallelism = 2", "parallelism = 3", "threads", "lookup", None),
    ("05", "10ms", "14ms", "operator", "remote", "blocked"),
    ("06", "7ms", "5ms", "operator", "commit", "blocked"),
    ("07", "5ms", "3.5ms", "operator", "update", "cpu"),
    ("08", "8ms", "11ms", "operator", "update", "blocked"),
    ("09", 'lock = "3ms", lock_name = "registry", hold = "sleep" }], parallelism = 2 },\n  { name = "parse"',
     'lock = "5ms", lock_name = "registry", hold = "sleep" }], parallelism = 2 },\n  { name = "parse"', "operator", "register", "blocked"),
    ("10", "100MB/s", "70MB/s", "device", "disk", None),
    ("11", "20MB/s", "30MB/s", "device", "nas", None),
    ("12", "512KiB", "768KiB", "operator", "fetch", None),
    ("13", "12ms", "9ms", "consumer", "consumer", None),
    ("14", "15ms", "19ms", "consumer", "consumer", None),
    ("15", "14ms", "10ms", "consumer", "consumer", None),
    ("16", "8ms", "5ms", "operator", "decode", "cpu"),
    ("17", "6ms", "9ms", "operator", "decode", "cpu"),
    ("18", "9ms", "6ms", "operator", "heavy", "blocked"),
    ("19", "14ms", "10ms", "operator", "e", "blocked"),
    ("20", "7ms", "5ms", "operator", "encode", "cpu"),
    ("13", '"3ms"', '"2ms"', "operator", "parse", "cpu"),
    ("03", '"1ms"', '"2ms"', "operator", "parse", "cpu"),
    ("08", '"2ms" }] }', '"4ms" }] }', "operator", "load", "blocked"),
]
# Settings of the table's pipeline on side A and on side B, and the row.
TABLE = [
    (["consumer.step=20ms"], ["consumer.step=30ms"], "consumer", "consumer"),
    (["source.throttle.bandwidth=4MB/s"], ["source.throttle.bandwidth=6MB/s"], "device", None),
]


class Busy(Exception):
    pass


def cores_of_others(headrace, db):
    """The most that other programs used during one of the runs."""
    runs = rows_of(headrace, db, "SELECT b.mean_value - p.last_value / r.duration_ns AS cores FROM run_summary r JOIN host_summary b "
                                 "USING (run_id) JOIN host_summary p USING (run_id) WHERE b.metric = 'host_busy_cores' AND "
                                 "p.metric = 'process_cpu_ns'")
    return max((run["cores"] for run in runs), default=0.0)


def compare(headrace, sides, folder, options):
    """Runs both sides in pairs, in ABBA order, and reads the parts of the change."""
    db = folder / "pairs.db"
    db.unlink(missing_ok=True)
    names = {"a": [], "b": []}
    for i in range(options.pairs):
        for side in ("ab", "ba")[i % 2]:
            names[side].append(f"{side}{i}")
            must([headrace, "run", *sides[side], "--db", db, "--name", names[side][-1], "--duration", f"{options.seconds}s", "--quiet"])
    others = cores_of_others(headrace, db)
    if others > OTHERS_LIMIT:
        raise Busy(f"other programs used {others:.2f} cores")
    lines = must([headrace.parent / "accuracy", "parts", db, ",".join(names["a"]), ",".join(names["b"])]).splitlines()
    keys = ["kind", "name", "stage", "part", "low", "high", "told", "cpu_a", "cpu_b", "blocked_a", "blocked_b"]
    rows = [dict(zip(keys, line.split("\t"))) for line in lines[1:]]
    for row in rows:
        row.update({key: float(row[key]) for key in keys[3:]})
    return float(lines[0].split("\t")[1]), rows


def is_right(row, kind, name):
    if kind == "device":  # the device, or the operator that waits for it
        return row["kind"] == "device" and (name is None or row["name"] == name) or row["stage"] == "fetch"
    if row["kind"] != kind:
        return False
    return name == row["stage"] if kind == "operator" else row["name"] == name


class Bench:
    def __init__(self):
        self.moved = self.right = self.cost_moved = self.cost_right = self.off = 0

    def judge(self, whole, rows, what, kind, name, cost):
        off = abs(sum(r["part"] for r in rows) - whole)
        found = [r for r in rows if is_right(r, kind, name)]
        part, low, high = (sum(r[key] for r in found) for key in ("part", "low", "high"))
        cost_part = -1.0
        if cost:
            before, after = (sum(r[f"{cost}_{side}"] for r in rows) for side in "ab")
            if abs(after / before - 1) >= COST_MOVED:
                cost_part = sum(r[f"{cost}_b"] - r[f"{cost}_a"] for r in found) / (after - before)
                self.cost_moved += 1
                self.cost_right += cost_part >= SHARE
        if abs(whole) >= MOVED:
            self.moved += 1
            self.right += part / whole >= SHARE
        self.off += off > SUM_LIMIT * max(abs(whole), 0.01)
        strangers = [r["part"] for r in rows if r["told"] and r not in found and r["kind"] != "unexplained"]
        stranger = max(strangers, key=abs, default=0)
        print("\t".join(["real-attribute", "0", kind, what, "1", f"{whole:.5f}", f"{whole:.5f}", f"{part:.5f}", f"{low:.5f}",
                         f"{high:.5f}", f"{off:.2g}", f"{cost_part:.4f}", f"{stranger:.5f}"]), flush=True)

    def holds(self):
        return self.off == 0 and self.right >= TRIALS * self.moved and self.cost_right >= TRIALS * self.cost_moved


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("headrace", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--pipelines", type=pathlib.Path, default=root / "workloads" / "pipelines")
    options = parser.parse_args()
    bench, failed = Bench(), 0
    with tempfile.TemporaryDirectory(prefix="headrace-attribution-") as name:
        folder = pathlib.Path(name)
        trials = []
        for number, old, new, kind, right, cost in PLANTED:
            path = next(options.pipelines.glob(f"{number}-*.toml"))
            text = path.read_text()
            if text.count(old) < 1:
                raise RuntimeError(f"{path.name} has no '{old}'")
            changed = folder / f"{path.stem}-{len(trials)}.toml"
            changed.write_text(text.replace(old, new, 1))
            trials.append((f"{path.stem} {right}", {"a": [path], "b": [changed]}, kind, right, cost))
        if any(re.search(options.only, f"table {b[0]}") for _, b, _, _ in TABLE):
            must([options.headrace, "generate", "rm1", "-o", folder / "rm1", "--rows", "20000"])
            for a, b, kind, right in TABLE:
                path = folder / "rm1" / "pipeline.toml"
                sides = {side: [path, *(word for knob in knobs for word in ("--set", knob))] for side, knobs in (("a", a), ("b", b))}
                trials.append((f"table {b[0]}", sides, kind, right, None))
        for what, sides, kind, right, cost in trials:
            if not re.search(options.only, what):
                continue
            for attempt in range(ATTEMPTS):
                try:
                    bench.judge(*compare(options.headrace, sides, folder, options), what, kind, right, cost)
                    break
                except Busy as busy:
                    print(f"{what}: {busy}" + (": left out" if attempt + 1 == ATTEMPTS else ""), file=sys.stderr)
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    failed += 1
                    break
    print(f"{bench.right} of {bench.moved} changes in the rate and {bench.cost_right} of {bench.cost_moved} in cost were given to what "
          f"was changed; {bench.off} sums are off", file=sys.stderr)
    return 0 if bench.holds() and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
