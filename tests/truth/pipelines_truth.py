#!/usr/bin/env python3
"""Known bottlenecks: runs every workloads/pipelines/*.toml, asks `report` what limits it and `plan` what to change,
applies the plan, and compares with the truth written in the file's first line ("# bottleneck: NAME").

usage: pipelines_truth.py HEADRACE PIPELINES_DIR [--seconds S] [--only SUBSTRING] [--markdown FILE] [--results DIR [--part K/N]]
--part 1/3: measures every third of the pipelines, keeps the results in DIR, and judges nothing. Without --part, what lies in DIR
is taken from there, once, and what does not is measured.
exit: 0 when the gates hold (bottleneck named in >= 90 % of the pipelines, prediction within 15 % in >= 80 %), 77 when they do not
and other processes kept the machine busy, else 1.

Other load on the machine changes what limits a pipeline. When the gates do not hold, the pipelines that missed are measured
once more, for twice as long; what they gave first is printed too.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import consistency

NAMED_GATE, PREDICTED_GATE, TOLERANCE = 0.90, 0.80, 0.15
OTHERS_LIMIT = 0.3  # cores used by other processes from which a planted bottleneck may not be the true one
SKIPPED = 77


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def must(command):
    code, out, err = run(command)
    if code != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {code}: {err.strip()[-400:]}")
    return out


def rows_of(headrace, db, sql):
    return json.loads(must([headrace, "query", "--db", db, "--format", "json", sql]))["rows"]


def measured_rate(headrace, db, run_name):
    rows = rows_of(headrace, db, "SELECT steps_count, wall_ns FROM step_summary JOIN run_summary USING (run_id) "
                                 f"WHERE name = '{run_name}'")
    return rows[0]["steps_count"] / (rows[0]["wall_ns"] / 1e9)


def one(headrace, path, seconds, folder):
    truth = re.match(r"#\s*bottleneck:\s*(\S+)", path.read_text()).group(1)
    db = folder / f"{path.stem}.db"
    duration = f"{seconds}s"
    db.unlink(missing_ok=True)
    must([headrace, "run", path, "--db", db, "--name", "before", "--duration", duration, "--quiet"])
    report = json.loads(must([headrace, "report", "before", "--db", db, "--format", "json"]))
    if contradictions := consistency.of_report(report):
        raise RuntimeError(f"{path.stem}: the report contradicts itself: {contradictions}")
    limit = report["verdict"]["limit"]["name"]
    others = next((h["mean_value"] for h in rows_of(headrace, db, "SELECT mean_value FROM host_summary JOIN run_summary "
                   "USING (run_id) WHERE name = 'before' AND metric = 'host_busy_cores'")), None)
    own = rows_of(headrace, db, "SELECT h.last_value / r.duration_ns AS cores FROM host_summary h JOIN run_summary r "
                  "USING (run_id) WHERE r.name = 'before' AND h.metric = 'process_cpu_ns'")[0]["cores"]
    others = None if others is None else max(0.0, others - own)
    plan_file = folder / f"{path.stem}.plan.json"
    must([headrace, "plan", "before", "--db", db, "-o", plan_file, "-f"])
    plan = json.loads(plan_file.read_text())
    predicted = plan["predicted"]["batches_per_second"]
    must([headrace, "run", path, "--plan", plan_file, "--db", db, "--name", "after", "--duration", duration, "--quiet"])
    before, after = measured_rate(headrace, db, "before"), measured_rate(headrace, db, "after")
    error = predicted / after - 1
    return {"pipeline": path.stem, "truth": truth, "named": limit, "right": limit == truth, "before": before,
            "predicted": predicted, "after": after, "error": error, "close": abs(error) <= TOLERANCE,
            "settings": plan["settings"], "others": others}


def table(rows):
    lines = ["| pipeline | true bottleneck | named | batches/s before | predicted after plan | measured after | error |",
             "|---|---|---|---|---|---|---|"]
    for r in rows:
        mark = "" if r["right"] else " (wrong)"
        lines.append(f"| {r['pipeline']} | {r['truth']} | {r['named']}{mark} | {r['before']:.1f} | {r['predicted']:.1f} | "
                     f"{r['after']:.1f} | {r['error']:+.1%}{'' if r['close'] else ' (outside)'} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("pipelines", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--part", default="1/1")
    options = parser.parse_args()
    paths = [path for path in sorted(options.pipelines.glob("*.toml")) if options.only in path.stem]
    part, parts = (int(x) for x in options.part.split("/"))
    results, failures = {}, {}

    def measured(path):
        """What a part measured, if it did with this executable."""
        kept = options.results / f"{path.stem}.json" if options.results else None
        if not kept or not kept.exists():
            return False
        fresh = kept.stat().st_mtime > options.headrace.stat().st_mtime
        r = json.loads(kept.read_text())
        kept.unlink()
        if fresh:
            (failures if "failed" in r else results)[path.stem] = r.get("failed", r)
        return fresh

    def measure(path, seconds, folder):
        failures.pop(path.stem, None)
        try:
            results[path.stem] = r = one(options.headrace.resolve(), path, seconds, pathlib.Path(folder))
            print(f"{r['pipeline']}: truth {r['truth']}, named {r['named']}, predicted error {r['error']:+.1%}, "
                  f"{r['settings']}", file=sys.stderr, flush=True)
        except (RuntimeError, KeyError, json.JSONDecodeError) as problem:
            results.pop(path.stem, None)
            failures[path.stem] = repr(problem)
            print(f"{path.stem}: {problem!r}", file=sys.stderr, flush=True)

    def gates_hold():
        total = len(paths)
        right, close = (sum(r[key] for r in results.values()) for key in ("right", "close"))
        return total > 0 and right >= NAMED_GATE * total and close >= PREDICTED_GATE * total

    with tempfile.TemporaryDirectory() as folder:
        if parts > 1:
            options.results.mkdir(parents=True, exist_ok=True)
            for path in paths[part - 1::parts]:
                measure(path, options.seconds, folder)
                kept = results.get(path.stem) or {"failed": failures[path.stem]}
                (options.results / f"{path.stem}.json").write_text(json.dumps(kept))
            return 0
        for path in paths:
            if not measured(path):
                measure(path, options.seconds, folder)
        if not gates_hold():
            again = [p for p in paths if p.stem in failures or not (results[p.stem]["right"] and results[p.stem]["close"])]
            print(table([results[p.stem] for p in again if p.stem in results]))
            print(f"\nthe gates do not hold: {len(again)} pipelines are measured once more\n", flush=True)
            for path in again:
                measure(path, 2 * options.seconds, folder)
    rows = [results[p.stem] for p in paths if p.stem in results]
    total = len(paths)
    right, close = sum(r["right"] for r in rows), sum(r["close"] for r in rows)
    print(table(rows))
    print(f"\nbottleneck named in {right} of {total}; prediction within {TOLERANCE:.0%} in {close} of {total}")
    if options.markdown:
        options.markdown.write_text(table(rows) + "\n")
    for name, problem in failures.items():
        print(f"failed: {name}: {problem}")
    if gates_hold():
        return 0
    busy = [r for r in rows if not (r["right"] and r["close"]) and (r["others"] or 0) > OTHERS_LIMIT]
    if len(busy) > 0 and right + len(busy) >= NAMED_GATE * total and close + len(busy) >= PREDICTED_GATE * total:
        print(f"skipped: other processes used {max(r['others'] for r in busy):.1f} cores while {len(busy)} of the missed "
              "pipelines ran, so what limits them is not what was planted; run it on an otherwise idle machine")
        return SKIPPED
    return 1


if __name__ == "__main__":
    sys.exit(main())
