#!/usr/bin/env python3
"""undeclared.py HEADRACE [--only NAME,...] [--seconds S] [--tsv FILE]: pipelines limited by something that nobody declared.

Servers with a latency, a bandwidth or a request rate; disks, CPU quotas and weights of control groups; memory budgets; neighbours;
a cold pass before warm ones. Each is recorded once as a user would; the words that name its limit were written down before
headrace was asked. What the first page advises (its plan, or the setting that it has tried) is then applied and measured in turns with
the pipeline as it was; where the page asked for that experiment it is read again with it. Judged are whether the limit is named,
whether the gain lies in the interval that was said, whether a sure gain brought nothing, and whether anything became slower by over
3 %. What this machine cannot make (control groups) is skipped, with the reason. Ends with 1 where less than 90 % are named right, less
than 85 % of the promises hold, or either of the last two happens.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from unknown_store import Server  # noqa: E402

COMPUTE = """
pipeline = { name = "compute" }
source = { synthetic = { rows = 64, bytes = "4KiB" }, epochs = 0 }
stage = [
  { name = "load", operators = [{ sleep = "1ms", name = "load" }], parallelism = 1 },
  { name = "parse", operators = [{ spin = "SPINms", name = "parse" }], parallelism = THREADS },
]
consumer = { step = "1ms" }
"""
BURN = "while True: pass"


def store(words, **server):
    return {"words": words, "server": server, "sets": ["pipeline.batch_rows=128", "source.epochs=0"]}


def compute(words, spin=8, threads=1, **more):
    return {"words": words, "compute": COMPUTE.replace("SPIN", str(spin)).replace("THREADS", str(threads)), **more}


MANY = ["source.coalesce_gap=0"]
# Words of the first page's lines "limit", "why", "fix" and of its conditions.
CASES = {
    "latency 20 ms": store(r"limit: .*fetch", late_s=0.02),
    "latency 60 ms": store(r"limit: .*fetch", late_s=0.06),
    "latency 120 ms": store(r"limit: .*fetch", late_s=0.12),
    "latency 60 ms, 40 MB/s": store(r"limit: .*fetch", late_s=0.06, bytes_per_s=40e6),
    "8 MB/s": store(r"limit: the store of fetch|may have no more to give", late_s=0.002, bytes_per_s=8e6),
    "16 MB/s": store(r"limit: the store of fetch|may have no more to give", late_s=0.002, bytes_per_s=16e6),
    "32 MB/s": store(r"limit: the store of fetch|may have no more to give", late_s=0.002, bytes_per_s=32e6),
    "100 requests/s": {**store(r"coalesce_gap", late_s=0.002, requests_per_s=100), "more": MANY},
    "200 requests/s": {**store(r"coalesce_gap", late_s=0.002, requests_per_s=200), "more": MANY},
    "400 requests/s": {**store(r"coalesce_gap", late_s=0.002, requests_per_s=400), "more": MANY},
    "disk of 8 MB/s": {"words": r"limit: the store of fetch|may have no more to give", "disk": {"read_bps": 8_000_000}},
    "disk of 24 MB/s": {"words": r"limit: the store of fetch|may have no more to give", "disk": {"read_bps": 24_000_000}},
    "disk of 100 requests/s": {"words": r"limit: .*fetch|coalesce_gap", "disk": {"read_iops": 100}, "more": MANY},
    "quota of 0.5 cores": compute(r"CPU quota", quota=0.5),
    "quota of 0.8 cores": compute(r"CPU quota", quota=0.8),
    "quota of 1.3 cores": compute(r"CPU quota", quota=1.3, threads=2),
    "memory for few splits": {**store(r"memory budget", late_s=0.06), "memory": 1.03},
    "memory for half the threads": {**store(r"memory budget", late_s=0.06), "memory": 1.7},
    "one neighbour": compute(r"limit: .*parse", neighbours=1),
    "two neighbours": compute(r"(others|other programs) use", neighbours=2),
    "two neighbours, nice 10": compute(r"limit: .*parse", neighbours=2, nice=10),
    "two neighbours of an eighth of the weight": compute(r"limit: .*parse", neighbours=2, shares=128),
    "two neighbours of four times the weight": compute(r"(others|other programs) use|CPU cores", neighbours=2, shares=4096),
    "cold, then warm": {"words": r"NOT ALL OF THE RUN|store of fetch|may have no more", "disk": {"read_bps": 12_000_000},
                        "warms": True},
}


class Skipped(Exception):
    pass


class Group:
    """A control group of version 1, gone at the end."""

    def __init__(self, controller, name, **values):
        self.path = pathlib.Path("/sys/fs/cgroup", controller, f"headrace-{os.getpid()}-{name}")
        try:
            self.path.mkdir()
        except OSError as error:
            raise Skipped(f"no control group can be made: {error}") from error
        try:
            for file, value in values.items():
                (self.path / file.replace("__", ".")).write_text(str(value))
        except OSError as error:
            self.path.rmdir()
            raise Skipped(f"control group: {error}") from error

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.path.rmdir()


class Trial:
    def __init__(self, headrace, folder, name, case, seconds):
        self.headrace, self.folder, self.name, self.case, self.seconds = headrace, folder, name, case, seconds
        self.groups, self.neighbours, self.server = [], [], None
        self.environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.pipeline, self.sets = "t/pipeline.toml", list(case.get("sets", [])) + list(case.get("more", []))
        self.options = []

    def of(self, *arguments, inside=False):
        enter = (lambda: [group.enter() for group in self.groups if group is not self.other]) if inside else None
        done = subprocess.run([self.headrace, *map(str, arguments)], cwd=self.folder, env=self.environment, preexec_fn=enter,
                              capture_output=True, text=True, timeout=180)
        if done.returncode not in (0, 4):
            raise RuntimeError(f"headrace {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def begin(self):
        case, self.other = self.case, None
        if "server" in case:
            server = {"late_s": 0.0, "bytes_per_s": 0.0, **case["server"]}
            self.server = Server(self.folder / "t", **server)
            self.sets.append(f"source.table={self.server.url('part-00000.dwrf')}")
        if "disk" in case:
            device = os.stat(self.folder).st_dev
            limits = {f"blkio__throttle__{key}_device": f"{os.major(device)}:{os.minor(device)} {value}"
                      for key, value in case["disk"].items()}
            self.groups.append(Group("blkio", "disk", **limits))
            self.sets += ["pipeline.batch_rows=128", "source.epochs=0"]
            if case.get("warms"):
                self.forget()
            else:
                self.sets.append("source.cold=true")
        if "quota" in case:
            self.groups.append(Group("cpu", "quota", cpu__cfs_period_us=100000, cpu__cfs_quota_us=int(case["quota"] * 100000)))
        if "compute" in case:
            self.pipeline = "compute.toml"
            (self.folder / self.pipeline).write_text(case["compute"])
        if "memory" in case:
            self.sets += ["consumer.step=0", "fetch.parallelism=8",
                          f"pipeline.memory={int(case['memory'] * self.least_bytes())}"]
        if "shares" in case:
            self.other = Group("cpu", "other", cpu__shares=case["shares"])
            self.groups.append(self.other)
        for _ in range(case.get("neighbours", 0)):
            enter = self.other.enter if self.other else None
            words = ["nice", "-n", str(case.get("nice", 0)), sys.executable, "-c", BURN]
            self.neighbours.append(subprocess.Popen(words, preexec_fn=enter))

    def least_bytes(self):
        """The least budget that is not refused: the process at rest, and room for one split."""
        budget = "1MiB"
        for _ in range(10):
            try:
                self.of("run", self.pipeline, "--no-record", "-q", "--epochs", "1", "--set", f"pipeline.memory={budget}")
                return float(re.match(r"[\d.]+", budget)[0]) * {"M": 1 << 20, "G": 1 << 30}[budget.strip("0123456789.")[0]]
            except RuntimeError as refused:
                said = re.search(r"pipeline.memory to ([\d.]+[MG]iB) or more", str(refused))
                if not said:
                    raise Skipped(f"no budget is said: {refused}") from refused
                budget = said[1]
        raise Skipped("no budget is enough")

    def forget(self):
        for path in (self.folder / "t").iterdir():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def end(self):
        if self.server:
            self.server.shutdown()
        for process in self.neighbours:
            process.kill()
            process.wait()
        for group in self.groups:
            group.close()

    def record(self, *options, sets=(), probe=False):
        """The rate after the start, in batches a second."""
        if self.case.get("warms"):
            self.forget()
        words = [word for each in [*self.sets, *sets] for word in ("--set", each)]
        self.of("run", self.pipeline, "--db", "runs.db", "-q", "--duration", f"{self.seconds}s", *([] if probe else ["--no-probe"]),
                *words, *options, inside=True)
        rows = json.loads(self.of("query", "--db", "runs.db", "--json", "SELECT start_ns, duration_ns, steps_count FROM step_interval "
                                  "WHERE run_id = (SELECT MAX(run_id) FROM run_summary) ORDER BY start_ns"))
        rows = rows["rows"] if isinstance(rows, dict) else rows
        steady = [row for row in rows[:-1] if row["start_ns"] > 1.5e9] or rows
        return sum(row["steps_count"] for row in steady) / (sum(row["duration_ns"] for row in steady) / 1e9)

    def page(self):
        """What the first page says of the first run: its text, and its line "fix"."""
        page = json.loads(self.of("report", "1", "--db", "runs.db", "--format", "json"))["page"]
        lines = {line["label"]: line["text"] for line in page["lines"] if line["label"]}
        return " ".join([*page.get("conditions", []), *(f"{key}: {value}" for key, value in lines.items())]), lines

    def judge(self):
        self.record(probe=True)
        text, lines = self.page()
        right = bool(re.search(self.case["words"], text))
        fix = lines.get("fix", "")
        said = promise_of(fix)
        change = gain = None
        then = ""
        if said:
            if setting := re.search(r'source\.coalesce_gap = "(\w+)"', fix):
                change = {"sets": [f"source.coalesce_gap={setting[1]}"]}
            elif setting := re.search(r"pipeline\.memory from .* to (\d+) MiB", fix):
                change = {"sets": [f"pipeline.memory={setting[1]}MiB"]}
            else:
                self.of("plan", "1", "--db", "runs.db", "-o", "plan.json", "-f")
                change = {"options": ["--plan", "plan.json"]}
        if change:
            gains = []
            for _ in range(2):
                base = self.record()
                gains.append(self.record(*change.get("options", []), sets=change.get("sets", ())) / base - 1)
            gain = statistics.mean(gains)
            if is_question(fix):  # what it says once the experiment that it asked for is in the store
                then = self.page()[1].get("fix", "")
        return {"name": self.name, "limit": lines.get("limit", ""), "right": right, "fix": fix, "low": said and said[0],
                "high": said and said[1], "gain": gain, "then": then, "text": text}


def promise_of(fix):
    """The interval of a promised gain, or None."""
    said = None if "No setting" in fix else re.search(r"\[(-?\d+), (-?\d+)\] predicted", fix)
    return said and (int(said[1]) / 100, int(said[2]) / 100)


def is_question(fix):
    return bool(re.search("[Mm]easure (it|both)", fix))


def verdict_of(row):
    """Of its promise: "", "holds", "misses", "NOTHING for a sure gain", "SLOWER"."""
    if row["gain"] is None:
        return ""
    again = promise_of(row["then"])
    # An experiment that was asked for may find less; the page must then not promise it again.
    if row["gain"] < -0.03 and (not is_question(row["fix"]) or (again and again[0] > 0)):
        return "SLOWER"
    if row["low"] > 0 and row["gain"] < 0.01:
        return "NOTHING"
    # What the machine does may differ between the runs by some percent.
    return "holds" if row["low"] - 0.03 <= row["gain"] <= row["high"] + 0.03 * (1 + row["high"]) else "misses"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--tsv", help="lines for `accuracy render`")
    arguments = parser.parse_args()
    headrace = os.path.abspath(arguments.headrace)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-undeclared-", dir="/var/tmp"))
    rows = []
    try:
        subprocess.run([headrace, "generate", "rm1", "-o", "t", "--rows", "6000"], cwd=folder, check=True, capture_output=True)
        for name, case in CASES.items():
            if arguments.only and not any(word in name for word in arguments.only.split(",")):
                continue
            (folder / "runs.db").unlink(missing_ok=True)
            trial = Trial(headrace, folder, name, case, arguments.seconds)
            try:
                trial.begin()
                row = trial.judge()
            except Skipped as reason:
                print(f"{name}: skipped: {reason}", flush=True)
                continue
            finally:
                trial.end()
            rows.append(row)
            brought = "" if row["gain"] is None else f"; it brought {100 * row['gain']:+.0f} % {verdict_of(row)}"
            print(f"{name}: {'right' if row['right'] else 'WRONG'}: {row['limit']}; {row['fix']}{brought}", flush=True)
            if row["then"]:
                print(f"    then: {row['then']}", flush=True)
            if not row["right"]:
                print(f"    {row['text']}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.tsv:
        text = ""
        for row in rows:
            gain = "" if row["gain"] is None else f"{100 * row['gain']:+.0f} %"
            text += "\t".join(["applied", "limits that nobody declared", row["name"], str(int(row["right"])), row["limit"], row["fix"],
                               gain, verdict_of(row)]) + "\n"
        pathlib.Path(arguments.tsv).write_text(text)
    if not rows:
        return 77
    right = sum(row["right"] for row in rows)
    verdicts = [verdict_of(row) for row in rows if row["gain"] is not None]
    holds, bad = verdicts.count("holds"), verdicts.count("NOTHING") + verdicts.count("SLOWER")
    print(f"{right} of {len(rows)} named right; {holds} of {len(verdicts)} promises hold; {verdicts.count('NOTHING')} sure gains brought "
          f"nothing, {verdicts.count('SLOWER')} made it slower")
    return int(right < 0.9 * len(rows) or holds < 0.85 * len(verdicts) or bad > 0)


if __name__ == "__main__":
    sys.exit(main())
