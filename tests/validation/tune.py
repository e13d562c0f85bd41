#!/usr/bin/env python3
"""`headrace tune` on pipelines that really run, against the best of a grid and a measured hill climb.

For each workloads/pipelines/*.toml:
  - best known: every setting of a grid runs for some seconds. Rows that are monotone are not varied: a stage that only blocks loses
    nothing by more threads, so it has the most (16); stages that compute have 1, 2 or 4 (1 or 2 where there are more than three of them).
    The best three run again, at length.
  - tuned: `tune --json`, from the file's settings, within a memory budget and in a memory cgroup of that size where one can be made.
  - climb: a thread more for the stage that gains most, found by running each, until none gains 2 %. Every run is a decision.
The settings of all three, and those of the file, then run in turns (A B C D, D C B A) and are compared by their medians.

Every result is a line of the cache, so that it goes on where it was stopped.

usage: tune.py HEADRACE PIPELINES_DIR [--cache FILE] [--only SUBSTRING] [--seconds S] [--memory BYTES] [--no-climb] [--set K=V]...
PIPELINES_DIR: pipeline files, or folders of generated tables with theirs (--set source.epochs=0: an epoch is short)
Prints a table. exit: 0 when at least nine of ten tuned pipelines come within 5 % of the best in at most 10 decisions, none over its
budget; 77 when they do not and other processes kept the machine busy; else 1. Wants a machine that does nothing else.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from memory import own_group  # noqa: E402

MOST, LONG, TURNS, DECISIONS, CLOSE, GATE, SKIPPED = 16, 3, 4, 10, 0.05, 0.9, 77
OTHERS_LIMIT = 0.3
MEMORY = 512 << 20
SETTINGS = []  # of every run


class Cache:
    """Lines of key, tab, value; an interrupted line does not count."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if path and path.exists():
            for line in path.read_text().splitlines():
                key, tab, value = line.partition("\t")
                if tab:
                    self.known[key] = json.loads(value)

    def get(self, key, make):
        if key not in self.known:
            self.known[key] = make()
            if self.path:
                with self.path.open("a") as file:
                    file.write(f"{key}\t{json.dumps(self.known[key])}\n")
        return self.known[key]


def computes(operator):
    if isinstance(operator, str):
        return operator != "fetch"  # of the reader: it waits for what it reads
    blocks = "sleep" in operator or operator.get("hold") == "sleep"
    return "spin" in operator or ("lock" in operator and not blocks)


def stages_of(text):
    """(name, threads, sequential, computes) of each stage."""
    return [(stage["name"], stage.get("parallelism", 1), stage.get("max_parallelism") == 1,
             any(computes(operator) for operator in stage["operators"])) for stage in tomllib.loads(text)["stage"]]


def rate_of(headrace, path, threads, seconds):
    with tempfile.TemporaryDirectory() as folder:
        command = [headrace, "run", path, "--db", f"{folder}/r.db", "--duration", f"{seconds}s", "--quiet", "--json"]
        for setting in [*SETTINGS, *(f"{name}={value}" for name, value in threads.items())]:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds + 60)
        if done.returncode != 0:
            raise RuntimeError(f"{path.name}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        query = [headrace, "query", "--db", f"{folder}/r.db", "--format", "json",
                 "SELECT SUM(i.steps_count) * 1e9 / SUM(i.duration_ns) AS rate FROM step_interval AS i "
                 "WHERE i.start_ns >= 500000000 AND i.start_ns < (SELECT MAX(start_ns) FROM step_interval)"]
        rows = json.loads(subprocess.run(query, capture_output=True, text=True, check=True).stdout)["rows"]
        return rows[0]["rate"]


def name_of(path):
    return path.stem if path.stem != "pipeline" else path.parent.name  # of a generated table


def key_of(path, what, threads, seconds):
    return f"{name_of(path)} {what} {seconds} " + ",".join(f"{k}={v}" for k, v in sorted(threads.items()))


def grid_of(stages):
    free = [s for s in stages if not s[2]]
    computing = sum(1 for s in free if s[3])
    ways = [(1, 2) if computing > 3 else (1, 2, 4) if s[3] else (MOST,) for s in free]
    ways = [w if s[3] else (MOST,) for w, s in zip(ways, free)]
    for choice in itertools.product(*ways):
        yield {f"{s[0]}.parallelism": threads for s, threads in zip(free, choice)}


def best_of(headrace, path, stages, cache, seconds):
    tried = [(cache.get(key_of(path, "grid", t, seconds), lambda: rate_of(headrace, path, t, seconds)), t)
             for t in grid_of(stages)]
    tried.sort(key=lambda entry: -entry[0])
    again = [(cache.get(key_of(path, "again", t, 2 * seconds), lambda: rate_of(headrace, path, t, 2 * seconds)), t)
             for _, t in tried[:LONG]]
    return max(again, key=lambda entry: entry[0])[1]


def climb(headrace, path, stages, cache, seconds):
    now = {f"{s[0]}.parallelism": s[1] for s in stages if not s[2]}
    rate, decisions = cache.get(key_of(path, "climb", now, seconds), lambda: rate_of(headrace, path, now, seconds)), 0
    while decisions < 60:
        best, most = None, rate * 1.02
        for knob in now:
            trial = dict(now, **{knob: now[knob] + 1})
            decisions += 1
            with_it = cache.get(key_of(path, "climb", trial, seconds), lambda: rate_of(headrace, path, trial, seconds))
            if with_it > most:
                best, most = trial, with_it
        if best is None:
            break
        now, rate = best, most
        decisions += 1
    return now, decisions


def tune(headrace, path, memory, group):
    def enter():
        with open(f"{group}/cgroup.procs", "w") as procs:
            procs.write("0")
    if group:
        with open(f"{group}/memory.limit_in_bytes", "w") as limit:
            limit.write(str(memory))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([headrace, "tune", path, "--db", f"{folder}/t.db", "--memory", str(memory), "--json",
                               *(word for setting in SETTINGS for word in ("--set", setting))],
                              preexec_fn=enter if group else None, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"{path.name}: tune: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        result = json.loads(done.stdout)
        hosts = json.loads(subprocess.run([headrace, "query", "--db", f"{folder}/t.db", "--format", "json",
                                           "SELECT metric, maximum_value, mean_value, last_value, duration_ns FROM host_summary "
                                           "JOIN run_summary USING (run_id) WHERE metric IN ('process_rss_bytes', "
                                           "'host_busy_cores', 'process_cpu_ns')"],
                                          capture_output=True, text=True, check=True).stdout)["rows"]
    seen = {row["metric"]: row for row in hosts}
    busy, own = seen.get("host_busy_cores"), seen.get("process_cpu_ns")
    others = None
    if busy and own and own["duration_ns"]:
        others = max(0.0, busy["mean_value"] - own["last_value"] / own["duration_ns"])
    return {"end": {k: v for k, v in result["end"].items() if v != result["start"][k]}, "decisions": result["applied_count"],
            "converged": result["converged"], "stopped": result["stopped"], "effect": result["effect_ratio"],
            "rss": seen.get("process_rss_bytes", {}).get("maximum_value"), "others": others}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headrace", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("pipelines", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--memory", type=int, default=MEMORY)
    parser.add_argument("--no-climb", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="in every run; begin another cache for it")
    options = parser.parse_args()
    SETTINGS.extend(options.set)
    cache = Cache(options.cache)
    group, reason = own_group()
    if reason:
        print(f"without a cgroup: {reason}", file=sys.stderr)
    print("| pipeline | start | tuned | best of the grid | climb | regret | decisions | climb's | budget kept |\n" + "|---" * 9 + "|")
    close, all_of, over, busy = 0, 0, 0, 0
    regrets, climb_regrets, decisions, climb_decisions = [], [], [], []
    try:
        for path in sorted(options.pipelines.rglob("*.toml")):
            if options.only not in str(path):
                continue
            stages = stages_of(path.read_text())
            seconds = options.seconds
            best = best_of(options.headrace, path, stages, cache, seconds)
            tuned = cache.get(f"{name_of(path)} tune {options.memory}", lambda: tune(options.headrace, path, options.memory, group))
            climbed, tries = (({}, 0) if options.no_climb else climb(options.headrace, path, stages, cache, seconds))
            sides = {"start": {}, "tuned": tuned["end"], "best": best, "climb": climbed}
            rates = {side: [] for side in sides}
            for turn in range(TURNS):
                for side in (list(sides) if turn % 2 == 0 else list(sides)[::-1]):
                    if side == "climb" and options.no_climb:
                        continue
                    key = key_of(path, f"turn{turn} {side}", sides[side], seconds)
                    rates[side].append(cache.get(key, lambda: rate_of(options.headrace, path, sides[side], seconds)))
            median = {side: statistics.median(values) if values else None for side, values in rates.items()}
            most = max(value for value in median.values() if value is not None)
            regret = 1 - median["tuned"] / most
            kept = tuned["rss"] is None or tuned["rss"] <= options.memory
            all_of += 1
            close += regret <= CLOSE and tuned["decisions"] <= DECISIONS
            over += not kept
            busy += (tuned["others"] or 0) > OTHERS_LIMIT
            regrets.append(regret)
            decisions.append(tuned["decisions"])
            if not options.no_climb:
                climb_regrets.append(1 - median["climb"] / most)
                climb_decisions.append(tries)
            climb_text = "-" if options.no_climb else f"{median['climb']:.1f}"
            print(f"| {name_of(path)} | {median['start']:.1f} | {median['tuned']:.1f} | {median['best']:.1f} | {climb_text} | "
                  f"{100 * regret:.1f} % | {tuned['decisions']} | {tries or '-'} | {'yes' if kept else 'NO'} |", flush=True)
    finally:
        if group:
            pathlib.Path(group).rmdir()
    if all_of == 0:
        raise SystemExit(f"{options.pipelines}: no pipeline to tune")
    print(f"\nwithin 5 % of the best in at most {DECISIONS} decisions: {close} of {all_of}; mean regret "
          f"{100 * statistics.mean(regrets):.1f} %, mean decisions {statistics.mean(decisions):.1f}; over the budget: {over}"
          f"{' (cgroup-enforced)' if group else ''}")
    worse = False
    if climb_regrets:
        print(f"measured hill climb: mean regret {100 * statistics.mean(climb_regrets):.1f} %, mean decisions "
              f"{statistics.mean(climb_decisions):.1f}")
        worse = statistics.mean(climb_decisions) < statistics.mean(decisions)
    if close >= GATE * all_of and over == 0 and not worse:
        return 0
    if busy:
        print(f"other processes kept the machine busy during {busy} of {all_of}")
        return SKIPPED
    return 1


if __name__ == "__main__":
    sys.exit(main())
