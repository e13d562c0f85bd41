#!/usr/bin/env python3
"""Bench B4, negative controls: pipelines in which there is nothing to gain, or in which headrace cannot see what it usually
sees. What it says must be that, and no change may be proposed. Prints a line for each for `accuracy render` (docs/accuracy.md).

usage: controls.py HEADRACE > FILE
exit: 0 when all hold, else 1
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from pipelines_truth import must, run, rows_of  # noqa: E402

SECONDS = "3s"


def text(stages, step):
    lines = ['pipeline = { name = "control" }', 'source = { synthetic = { rows = 64, bytes = "64KiB" }, epochs = 0 }',
             f'consumer = {{ step = "{step}" }}', "stage = ["]
    lines += [f'  {{ name = "{name}", operators = [{operator}], parallelism = {threads}{rest} }},'
              for name, operator, threads, rest in stages]
    return "\n".join(lines + ["]"]) + "\n"


class Controls:
    def __init__(self, headrace, folder):
        self.headrace, self.folder, self.db = headrace, folder, folder / "controls.db"
        self.failed = 0

    def pipeline(self, name, *args):
        path = self.folder / f"{name}.toml"
        path.write_text(text(*args))
        return path

    def record(self, name, path, *more, prefix=()):
        must([*prefix, self.headrace, "run", path, "--db", self.db, "--name", name, "--duration", SECONDS, "--quiet", *more])

    def report(self, name):
        return json.loads(must([self.headrace, "report", name, "--db", self.db, "--format", "json"]))

    def plan(self, name, *more):
        return json.loads(must([self.headrace, "plan", name, "--db", self.db, "--json", *more]))

    def say(self, name, must_be, held, found):
        self.failed += not held
        print("\t".join(["control", name, must_be, str(int(held)), str(found)]), flush=True)


def consumer_bound(c):
    path = c.pipeline("consumer", [("load", '{ sleep = "2ms" }', 1, ""), ("parse", '{ spin = "1ms" }', 1, "")], "12ms")
    c.record("consumer", path)
    limit = c.report("consumer")["verdict"]["limit"]["name"]
    changes = c.plan("consumer")["changes"]
    c.say("slow consumer", "the trainer is named, no change", limit == "consumer" and not changes, f"{limit}, {len(changes)} changes")


def nothing_left(c):
    path = c.pipeline("optimal", [("load", '{ sleep = "8ms" }', 1, ""), ("parse", '{ spin = "1ms" }', 1, "")], "4ms")
    c.record("first", path)
    file = c.folder / "plan.json"
    must([c.headrace, "plan", "first", "--db", c.db, "-o", file, "-f"])
    c.record("second", path, "--plan", file)
    before, after = c.plan("first"), c.plan("second")
    c.say("a plan that was applied", "the next plan changes nothing", bool(before["changes"]) and not after["changes"],
          f"{len(before['changes'])} changes, then {len(after['changes'])}")


def as_it_is(c):
    said = c.plan("first", "--what-if", "load.parallelism=1")
    gain = said["gain_ratio"]
    c.say("what if nothing changed", "a gain of 0", abs(gain) < 1e-9, f"{gain:+.2%}")


def slow_source(c):
    path = c.pipeline("source", [("arrive", '{ sleep = "40ms" }', 1, ", max_parallelism = 1"), ("parse", '{ spin = "1ms" }', 2, "")],
                      "1ms")
    c.record("source", path)
    limit, changes = c.report("source")["verdict"]["limit"]["name"], c.plan("source")["changes"]
    more = [change["knob"] for change in changes if change["to"] > change["from"]]
    c.say("source that delivers slowly, of one thread", "it is named, nothing is widened", limit == "arrive" and not more,
          f"{limit}, widened {more}")


def killed_collector(c):
    path = c.pipeline("killed", [("load", '{ sleep = "8ms" }', 1, ""), ("parse", '{ spin = "1ms" }', 1, "")], "1ms")
    process = subprocess.Popen([c.headrace, "run", path, "--db", c.db, "--name", "killed", "--duration", "6s", "--quiet"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    process.wait(timeout=30)
    state = next((r["state"] for r in json.loads(must([c.headrace, "runs", "--db", c.db, "--json"]))["runs"] if r["name"] == "killed"), "")
    limit = c.report("killed")["verdict"]["limit"]["name"]
    c.say("collector killed half-way", "the run is called interrupted, what was stored is judged",
          bool(children) and state == "interrupted" and limit == "load", f"{state}, {limit}")


def without_rights(c):
    path = c.pipeline("rights", [("load", '{ sleep = "8ms" }', 1, ""), ("parse", '{ spin = "1ms" }', 1, "")], "1ms")
    if os.geteuid() != 0 or run(["setpriv", "--reuid=65534", "--clear-groups", "true"])[0] != 0:
        print("controls.py: without rights: left out, as this user has none to give up", file=sys.stderr)
        return
    # The folder is the other user's then.
    os.chmod(c.folder, 0o777)
    if c.db.exists():
        c.db = c.folder / "rights.db"
    code, _, err = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
                        c.headrace, "run", path, "--db", c.db, "--name", "rights", "--duration", SECONDS, "--quiet"])
    if code != 0:
        print(f"controls.py: without rights: left out: {err.strip()[-200:]}", file=sys.stderr)
        return
    report = c.report("rights")
    limit = report["verdict"]["limit"]["name"]
    level = report["run"]["accounting_level"]
    active = [r["probe"] for r in rows_of(c.headrace, c.db, "SELECT probe FROM probe_status WHERE state = 'active'")]
    off = [r for r in rows_of(c.headrace, c.db, "SELECT probe, reason FROM probe_status WHERE state <> 'active'")]
    reasons = all(r["reason"] for r in off)
    c.say("no right to load programs into the kernel", "the same is named at a lower level, each missing probe with its reason",
          limit == "load" and level <= 2 and bool(off) and reasons, f"{limit}, level {level}, {len(active)} probes, {len(off)} not")


def main():
    headrace = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        controls = Controls(headrace, pathlib.Path(folder))
        for control in (consumer_bound, nothing_left, as_it_is, slow_source, killed_collector, without_rights):
            try:
                control(controls)
            except (RuntimeError, KeyError, IndexError, subprocess.TimeoutExpired) as problem:
                controls.say(control.__name__.replace("_", " "), "an answer", False, repr(problem).replace("\t", " ")[:200])
        return 1 if controls.failed else 0


if __name__ == "__main__":
    sys.exit(main())
