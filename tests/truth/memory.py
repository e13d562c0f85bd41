#!/usr/bin/env python3
"""Whether `[pipeline] memory` holds: random configurations, each run twice.

  memory.py HEADRACE [COUNT]        (COUNT configurations, 50 by hand; HEADRACE_SEED repeats a run)

First free, with the peak of resident memory (VmHWM) taken from the kernel's own account of the ended process: it must be
within the budget. Then within a memory cgroup whose limit is the budget: the run must end by itself, nothing killed, with the
same rows. A budget that is too small must be refused in one line that names a sufficient one, and that one is then tried.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import memory_group

MIB = 1 << 20
LIMIT_S = 600  # of one run: only a hang takes as long


def start(arguments, before=None):
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                            preexec_fn=before, text=True)


def run(arguments, group=None, limit=None):
    """(exit status, stdout, stderr, peak resident bytes) of one process; a killed one has a negative status."""
    def enter():
        with open(os.path.join(group, "cgroup.procs"), "w") as procs:
            procs.write(str(os.getpid()))
    if group:
        with open(os.path.join(group, "memory.limit_in_bytes"), "w") as file:
            file.write(str(limit))
    process = start(arguments, enter if group else None)
    timer = time.monotonic() + LIMIT_S
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    watchdog.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if time.monotonic() > timer:
        err += f" (did not end within {LIMIT_S} s)"
    return process.returncode, out, err, usage.ru_maxrss * 1024


def configuration(pick, table, folder):
    settings = {
        "pipeline.memory": "%dMiB" % pick.choice([80, 96, 112, 128, 160, 192, 256, 512, 1024]),
        "pipeline.batch_rows": pick.choice([32, 100, 256, 512, 1024, 4096]),
        "pipeline.layout": pick.choice(["direct", "direct", "flatmap"]),
        "pipeline.order": pick.choice(["any", "file"]),
        "pipeline.huge_pages": pick.choice(["true", "false"]),
        "source.io": pick.choice(["pread", "uring"]),
        "source.epochs": pick.choice([1, 2]),
        "consumer.step": pick.choice(["0", "0", "5ms"]),
        **table["joins"],
    }
    settings["dedup.mode"] = pick.choice(["off", "off", "auto", "on"])
    settings["dedup.scope"] = pick.choice(["neighbours", "batch"])
    for stage in table["stages"]:
        settings[stage + ".queue"] = pick.choice([1, 2, 4, 16, 64])
        if settings["pipeline.order"] == "any" or stage not in table["sequential"]:
            settings[stage + ".parallelism"] = pick.choice([1, 2, 4])
    if table["name"] == "rowmap":
        settings["dedup.mode"] = "off"  # which it excludes, as a cache does
    cache = pick.choice(["", "", "memory", "disk"])
    if cache:
        settings["dedup.mode"] = "off"
        settings["cache.after"] = pick.choice(["extract", "transform"])
        settings["cache.allow_random"] = "true"
        settings["cache.tier"] = cache
        settings["cache.budget"] = pick.choice(["8MiB", "1GiB"] if cache == "disk" else ["4MiB", "16MiB"])
        if cache == "disk":
            settings["cache.folder"] = os.path.join(folder, "cache%d" % pick.randrange(3))
    return settings


def command(headrace, table, settings):
    arguments = [headrace, "run", table["pipeline"], "--no-record", "--checksum", "--json"]
    for key, value in settings.items():
        arguments += ["--set", "%s=%s" % (key, value)]
    return arguments


def text_of(path):
    with open(path) as file:
        return file.read()


def make_tables(headrace, folder):
    tables = []
    for name, flags in [("rm1", ["--rows", "16384", "--stripe-rows", "1024", "--clustered"]),
                        ("rm1big", ["--rows", "16384", "--stripe-rows", "4096"]),
                        ("rm3", ["--rows", "32768", "--stripe-rows", "8192"])]:
        path = os.path.join(folder, name)
        subprocess.run([headrace, "generate", name[:3], "-o", path, "--features", "0.03", "--seed", "5"] + flags, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pipeline = os.path.join(path, "pipeline.toml")
        text = text_of(pipeline)
        stages = re.findall(r'\[\[stage\]\]\s*name = "(\w+)"\s*operators = \[([^\]]*)\]', text)
        tables.append({"name": name, "pipeline": pipeline, "stages": [s for s, _ in stages], "joins": {},
                       "sequential": [s for s, operators in stages if '"batch"' in operators]})
        assert tables[-1]["stages"], text
    # The first one with rows that wait for others twice more: to be shuffled, and to become large batches.
    joining = os.path.join(folder, "rm1", "joining.toml")
    text = text_of(tables[0]["pipeline"]).replace('= ["batch"', '= ["shuffle", "batch"')
    text = text.replace("[consumer]", '[[stage]]\nname = "client"\noperators = ["rebatch"]\n\n[consumer]')
    with open(joining, "w") as file:
        file.write(text)
    tables.append(dict(tables[0], name="joining", pipeline=joining, joins={"pipeline.shuffle_rows": 1500, "pipeline.worker_rows": 32}))
    # The second one as a map for each row, and with a part of its rows.
    for name, change in [("rowmap", lambda text: text.replace('"extract"', '"extract", "rowmap"')),
                         ("filter", lambda text: text + '\n[[filter]]\ncolumn = "label"\nin = [1]\n')]:
        path = os.path.join(folder, "rm1big", name + ".toml")
        text = text_of(tables[1]["pipeline"])
        with open(path, "w") as file:
            file.write(change(text))
        assert text_of(path) != text
        tables.append(dict(tables[1], name=name, pipeline=path))
    return tables


def main():
    headrace = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seed = int(os.environ.get("HEADRACE_SEED", random.randrange(1 << 32)))
    print("HEADRACE_SEED=%d" % seed, flush=True)
    pick = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="headrace-memory-")
    group, reason = memory_group.own_group("headrace-memory")
    if reason:
        print("without the cgroup half:", reason)
    failures = refused = 0
    try:
        tables = make_tables(headrace, folder)
        rows = {}
        for table in tables:
            for epochs in (1, 2):
                code, out, err, _ = run(command(headrace, table, {"source.epochs": epochs, "consumer.step": "0", **table["joins"]}))
                assert code == 0, err
                rows[table["name"], epochs] = json.loads(out)["checksum"]["multiset"]
        for number in range(count):
            table = pick.choice(tables)
            settings = configuration(pick, table, folder)
            wrong = []
            code, out, err, peak = run(command(headrace, table, settings))
            first = settings["pipeline.memory"]
            # What a split needs is not known where already the process at rest is too large: then once more.
            for attempt in range(2):
                if not (code == 7 or code == 2 or (code != 0 and "pipeline.memory" in err)) or wrong:
                    break
                if attempt > 0 and not at_rest:
                    break
                refused += 1
                at_rest = "needs at rest" in err
                lines = [line for line in err.strip().split("\n")
                         if "layout flatmap was taken" not in line and "[[filter]] dropped" not in line]  # notes
                least = re.search(r"pipeline\.memory to (\d+)MiB", lines[-1])
                if len(lines) != 1 or not least:
                    wrong.append("refused with %r" % err)
                elif peak > int(settings["pipeline.memory"][:-3]) * MIB:
                    wrong.append("refused, but took %.0f MiB" % (peak / MIB))
                else:
                    settings["pipeline.memory"] = least.group(1) + "MiB"
                    code, out, err, peak = run(command(headrace, table, settings))
            budget = int(settings["pipeline.memory"][:-3]) * MIB
            want = rows[table["name"], settings["source.epochs"]]
            if not wrong:
                if code != 0:
                    wrong.append("exit %d: %s" % (code, err.strip()))
                elif json.loads(out)["checksum"]["multiset"] != want:
                    wrong.append("other rows")
                if peak > budget:
                    wrong.append("peak of %.1f MiB" % (peak / MIB))
            note = "" if first == settings["pipeline.memory"] else " (%s was refused)" % first
            if not wrong and group:
                code, out, err, _ = run(command(headrace, table, settings), group, budget)
                if code != 0:
                    wrong.append("in the cgroup: exit %d: %s" % (code, err.strip()))
                elif json.loads(out)["checksum"]["multiset"] != want:
                    wrong.append("in the cgroup: other rows")
                with open(os.path.join(group, "memory.oom_control")) as control:
                    kills = re.search(r"oom_kill (\d+)", control.read())
                if kills and int(kills.group(1)) > 0:
                    wrong.append("in the cgroup: %s killed" % kills.group(1))
            failures += bool(wrong)
            print("%3d %-7s budget %4d MiB%s, peak %6.1f MiB (%3.0f %%) %s" %
                  (number, table["name"], budget / MIB, note, peak / MIB, 100 * peak / budget,
                   "WRONG: %s; %s" % ("; ".join(wrong), settings) if wrong else "ok"), flush=True)
    finally:
        if group:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)
    print("%d configurations, %d refused at first, %d wrong" % (count, refused, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
