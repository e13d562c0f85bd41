#!/usr/bin/env python3
"""The optimisation ladder of the literature, climbed on an rm1 table: what each step changes in the reader, in the storage and in the
trainer, beside what was published.

  base   whole maps, rows handed on as maps      + FF   flattened maps (one sub-column a feature), batches still made of row maps
  + FM   columnar batches (FlatMap)              + CR   coalesced reads (gap and longest read 1.25 MiB)
  + FR   features ordered by popularity          + LS   large stripes (4 times the rows)
  + RB   small worker batches, joined at the client (training batches of 4096 rows all along)
  + CL   rows clustered by session               + DD   deduplication (IKJT), from the decoding to the trainer

Each step keeps those before it and is compared with the one before it. Rounds of one run per step, every other round backwards; a
ratio is taken within a round, of neighbouring runs. Three figures, each from the accounts of recorded runs:

  reader   rows per CPU second of the reader's stages on one core, page cache warm (level 2: thread CPU clocks)
  storage  rows per second of a modelled disk's time (source.throttle.preset=disk: 150 MB/s, 8 ms to move the head)
  trainer  rows per CPU second of the reference DLRM (from RB on)

Popularity comes from a log of jobs drawn at random by the table's own popularity of features; the job measured is not among them.
Below the table, for each step: what the accounts say has changed, and what the published factor would have taken.

usage: ladder.py HEADRACE [--quick] [--rounds N] [--disk-rounds N] [--rows N] [--features F] [--cpu N] [--seed N] [--markdown FILE]
About 5 minutes (--quick: less than one). Exit 3 when a step's sign is opposite to the published one.
"""
import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

DISK_BYTES_PER_SECOND, DISK_SEEK = 150e6, 8e-3  # of preset "disk"
WINDOW = "1280KiB"
TRAINING_ROWS, WORKER_ROWS = 4096, 512
ISCA = "ISCA'22, table 12"
BLOG = "Meta engineering blog 2022"
RECD = "RecD, MLSys'23"


class Step:
    def __init__(self, name, words, published=None, against=None, **change):
        self.name, self.words, self.change = name, words, change
        self.published = published or {}  # figure -> (factor, or lowest and highest, source)
        self.against = against or {}  # figure -> the step that the published factor is counted from, if not the one before


STEPS = [
    Step("base", "whole maps, a map per row", table="map"),
    Step("FF", "flattened maps", {"reader": (2.00, ISCA), "storage": (0.03, ISCA)}, table="flat", rowmap=True),
    Step("FM", "columnar batches", {"reader": (1.15, ISCA), "storage": (1.00, ISCA)}, rowmap=False),
    Step("CR", "coalesced reads", {"reader": (1.00, ISCA), "storage": (0.99 / 0.03, ISCA)}, gap=WINDOW),
    Step("FR", "features by popularity", {"reader": (1.00, ISCA), "storage": (1.84 / 0.99, ISCA)}, table="popular"),
    Step("LS", "large stripes", {"reader": (1.00, ISCA), "storage": (2.41 / 1.84, ISCA)}, table="large"),
    Step("RB", "rebatching at the client", {"reader": ((1.20, 1.40), BLOG)}, rebatch=True),
    Step("CL", "rows clustered by session", {"bytes": (1 / 3.71, RECD)}, table="clustered"),
    Step("DD", "deduplication", {"reader": (1.79, RECD), "trainer": (2.48, RECD)}, {"reader": "RB", "trainer": "RB"}, dedup="auto"),
]
FIGURES = {"reader": "rows per CPU s", "storage": "rows per disk s", "bytes": "bytes read a row", "trainer": "rows per CPU s"}


def settings_of(number):
    state = {"table": "map", "rowmap": False, "gap": "0", "rebatch": False, "dedup": "off"}
    for step in STEPS[:number + 1]:
        state.update(step.change)
    return state


def text_of(factor):
    """A factor with enough digits to tell it from 1."""
    return f"{factor:.0f}" if factor >= 20 else f"{factor:.2f}" if factor >= 0.1 else f"{factor:.3f}"


class Run:
    """The accounts of one recorded run, per row."""

    def __init__(self, database, run, done, peak_bytes):
        self.rows, self.peak_bytes = done["rows_count"], peak_bytes
        self.rate = done["rows_per_second"]
        read = lambda sql: database.execute(sql, (run,)).fetchall()
        self.operators, self.trainer = {}, {}
        lists_in = lists_out = 0
        for name, kind, stage, cpu, completions, bytes_in, bytes_out in read(
                "SELECT operator, kind, stage, on_cpu_ns, completions_count, bytes_in_bytes, bytes_out_bytes FROM operator_summary "
                "WHERE run_id = ?"):
            if cpu is None:
                sys.exit("ladder.py: no thread CPU clock in the accounts (level 2), see headrace doctor")
            if stage in ("client", "consumer"):
                if kind == "trainer":  # the rest of its stage is the making of the model, once
                    self.trainer[name] = cpu / self.rows / 1e3
                continue
            group = "fetch" if kind in ("fetch", "io") else "dedup" if kind == "dedup" else "transform" if kind == "transform" else name
            self.operators[group] = self.operators.get(group, 0) + cpu / self.rows / 1e3  # us a row
            if kind == "fetch":
                self.read_bytes, self.wanted_bytes = bytes_in / self.rows, bytes_out / self.rows
            if name == "fetch.io":
                self.requests = completions / self.rows
            if name == "decompress":
                self.plain_bytes = bytes_out / self.rows
            if kind == "dedup":
                lists_in, lists_out = lists_in + bytes_in, lists_out + bytes_out
        self.dedup_factor = lists_in / lists_out if lists_out else None
        stages = read("SELECT stage, on_cpu_ns FROM stage_summary WHERE run_id = ?")
        self.reader_cpu = sum(cpu for stage, cpu in stages if stage not in ("client", "consumer")) / self.rows / 1e9
        self.client_cpu = sum(cpu for stage, cpu in stages if stage == "client") / self.rows / 1e9
        self.trainer_cpu = sum(self.trainer.values()) / 1e6
        disk = read("SELECT hold_ns FROM resource_summary WHERE run_id = ? AND kind = 'device'")
        self.disk = disk[0][0] / self.rows / 1e9 if disk else None

    def seeking(self):
        """The share of the disk's time in which it moves its head."""
        return max(0.0, 1 - self.read_bytes / DISK_BYTES_PER_SECOND / self.disk)

    def figure(self, which):
        return {"reader": lambda: 1 / self.reader_cpu, "storage": lambda: 1 / self.disk, "bytes": lambda: self.read_bytes,
                "trainer": lambda: 1 / self.trainer_cpu}[which]()


class Ladder:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.database = folder / "runs.db"
        self.epochs = {}

    def command(self, *words):
        done = subprocess.run([self.options.headrace, *words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ladder.py: headrace {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def make_tables(self):
        options, folder = self.options, self.folder
        self.command("generate", "rm1", "-o", folder / "flat", "--rows", str(options.rows), "--features", str(options.features),
                     "--stripe-rows", str(options.stripe_rows), "--seed", str(options.seed))
        self.command("rewrite", folder / "flat", "-o", folder / "map", "--layout", "map")
        log, generator = folder / "coread.jsonl", random.Random(options.seed)
        features = json.loads((folder / "flat" / "table.json").read_text())["features"]
        with log.open("w") as lines:
            for _ in range(options.jobs):
                names = [entry["feature"] for entry in features if generator.random() < entry["popularity"]]
                lines.write(json.dumps({"schema": "headrace.coread/1", "table": "rm1", "features": names, "weight": 1}) + "\n")
        self.command("rewrite", folder / "flat", "-o", folder / "popular", "--order", "popularity", "--coread", log)
        self.command("rewrite", folder / "popular", "-o", folder / "large", "--stripe-rows", str(4 * options.stripe_rows))
        self.command("rewrite", folder / "large", "-o", folder / "clustered", "--cluster", "session_id")

    def pipeline(self, number):
        """The generated pipeline file with this step's table and operators."""
        state = settings_of(number)
        text = (self.folder / "flat" / "pipeline.toml").read_text()
        text = text.replace('table = "."', f'table = "{self.folder / state["table"]}"')
        if state["rowmap"]:
            text = text.replace('"extract"]', '"extract", "rowmap"]')
        if state["rebatch"]:
            text = text.replace("[consumer]", '[[stage]]\nname = "client"\noperators = ["rebatch"]\n\n[consumer]')
        path = self.folder / f"{STEPS[number].name}.toml"
        path.write_text(text)
        knobs = [f"source.coalesce_gap={state['gap']}", f"source.coalesce_max={WINDOW}", f"pipeline.batch_rows={TRAINING_ROWS}",
                 f"dedup.mode={state['dedup']}", "consumer.step=0"]
        if state["rebatch"]:
            knobs.append(f"pipeline.worker_rows={WORKER_ROWS}")
        return path, knobs

    def run(self, number, figure):
        path, knobs = self.pipeline(number)
        if figure == "storage":
            knobs.append("source.throttle.preset=disk")
        else:
            knobs.append(f"source.epochs={self.epochs.get((number, figure), 1)}")
        if figure == "trainer":
            knobs.append("consumer.kind=trainer")
        words = ["taskset", "-c", str(self.options.cpu), self.options.headrace, "run", path, "--json", "--db", self.database, "--level",
                 "2"]
        for knob in knobs:
            words += ["--set", knob]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.stdout.close(), process.stderr.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"ladder.py: {' '.join(map(str, words))}: exit {process.returncode}\n{errors}")
        done = json.loads(out)
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return Run(database, done["run_id"], done, usage.ru_maxrss * 1024)

    def climb(self, figure, numbers, rounds):
        """Runs of every step in each round: a list of {number: Run}."""
        found = []
        for number in numbers:
            if figure != "storage":  # warms up, and says how many epochs make a run long enough
                once = self.run(number, figure)
                cpu = once.rows * (once.reader_cpu + once.client_cpu + once.trainer_cpu)
                self.epochs[number, figure] = max(1, math.ceil(self.options.seconds / cpu))
        for round_number in range(rounds):
            order = numbers if round_number % 2 == 0 else numbers[::-1]
            found.append({number: self.run(number, figure) for number in order})
            print(f"{figure}: round {round_number + 1} of {rounds}", file=sys.stderr, flush=True)
        return found


def interval(values):
    """The median and its 95 % interval, by resampling; of few values the least and the largest."""
    if len(values) < 5:
        return statistics.median(values), min(values), max(values)
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(4000))
    return statistics.median(values), medians[100], medians[3899]


def middle(runs, value):
    return statistics.median(value(run) for run in runs)


def sign(published, low, high):
    least, most = published if isinstance(published, tuple) else (published, published)
    if least <= 1.02 and most >= 0.98:
        return "same (none)" if 0.9 <= low and high <= 1.1 else "differs: none published"
    if low <= 1 <= high:
        return "not resolved"
    return "same" if (least > 1) == (low > 1) else "OPPOSITE"


def explain_cpu(before, after, ratio, published, operators, cpu):
    """What changed in the CPU time of a row, by operator."""
    names = {name for runs in (before, after) for run in runs for name in operators(run)}
    time_of = lambda runs, name: middle(runs, lambda run: operators(run).get(name, 0))
    deltas = sorted(((time_of(after, name) - time_of(before, name), name) for name in names), key=lambda d: -abs(d[0]))
    whole = [middle(runs, lambda run: cpu(run) * 1e6) for runs in (before, after)]
    told = [f"{name} {time_of(before, name):.1f} -> {time_of(after, name):.1f}" for delta, name in deltas[:3] if abs(delta) >= 0.02 * whole[0]]
    text = f"CPU a row {whole[0]:.1f} -> {whole[1]:.1f} us" + (f" ({', '.join(told)})" if told else " (no operator by 2 % of it)")
    if published is None:
        return text
    least, most = published if isinstance(published, tuple) else (published, published)
    if least * 0.9 <= ratio <= most * 1.1:
        return text
    aim = least if ratio < least else most
    untouched = [name for delta, name in deltas if abs(delta) < 0.05 * time_of(before, name)]
    rest = sum(time_of(before, name) for name in untouched)
    text += f"; x{text_of(aim)} would be {whole[0] / aim:.1f} us"
    if untouched and whole[0] - rest > 0 and whole[1] - rest > 0:
        text += (f"; {', '.join(sorted(untouched))}, which it does not touch, are {rest:.1f} us: without them "
                 f"x{text_of((whole[0] - rest) / (whole[1] - rest))}")
    return text


def explain_storage(before, after, ratio, published):
    """Bytes, requests and the head's moves."""
    pair = lambda value: tuple(middle(runs, value) for runs in (before, after))
    requests, read, disk = pair(lambda run: run.requests), pair(lambda run: run.read_bytes), pair(lambda run: run.disk)
    over, seeking = pair(lambda run: 1 - run.wanted_bytes / run.read_bytes), pair(lambda run: run.seeking())
    text = (f"requests per 1000 rows {requests[0] * 1e3:.1f} -> {requests[1] * 1e3:.1f}, of {read[0] / requests[0] / 1e3:.0f} -> "
            f"{read[1] / requests[1] / 1e3:.0f} KB; read {read[0]:.0f} -> {read[1]:.0f} B a row, over-read {over[0]:.0%} -> {over[1]:.0%} "
            f"of it; head moves {seeking[0]:.0%} -> {seeking[1]:.0%} of the disk's time")
    if published is None or published * 0.9 <= ratio <= published / 0.9:
        return text
    if over[1] > 0.01:
        text += f"; with these moves and no over-read x{text_of(disk[0] / (disk[1] - read[1] * over[1] / DISK_BYTES_PER_SECOND))}"
    left = disk[0] / published - read[1] / DISK_BYTES_PER_SECOND
    if left > 0:
        text += f"; x{text_of(published)} would be {left / DISK_SEEK * 1e3:.1f} moves per 1000 rows, not {disk[1] * seeking[1] / DISK_SEEK * 1e3:.1f}"
    else:
        text += (f"; x{text_of(published)} cannot be reached by fewer requests: the bytes alone take {read[1] / DISK_BYTES_PER_SECOND * 1e6:.1f} us "
                 f"a row, x{text_of(disk[0] * DISK_BYTES_PER_SECOND / read[1])}")
    return text


def explain_bytes(before, after):
    plain, read = (tuple(middle(runs, value) for runs in (before, after)) for value in (lambda run: run.plain_bytes, lambda run: run.wanted_bytes))
    return (f"the projected streams are {plain[0]:.0f} -> {plain[1]:.0f} B a row uncompressed, {read[0]:.0f} -> {read[1]:.0f} B stored "
            f"(compression {plain[0] / read[0]:.2f} -> {plain[1] / read[1]:.2f}): without over-read x{text_of(read[1] / read[0])}")


def explain_trainer(before, after, ratio, published):
    text = explain_cpu(before, after, ratio, published, lambda run: run.trainer, lambda run: run.trainer_cpu)
    if after[0].dedup_factor:
        text += (f"; the grouped lists are {middle(after, lambda run: run.dedup_factor):.2f} times as many bytes as their unique ones and "
                 "the inverse")
    return text


def compared(step, figure, climbs, position, numbers):
    """Ratio of this step to the one it is compared with: (before runs, after runs, median, low, high, words)."""
    name = step.against.get(figure)
    before = next((i for i in numbers if STEPS[i].name == name), position - 1) if name else position - 1
    rounds = climbs.get("storage" if figure == "bytes" else figure)
    if rounds is None or before not in rounds[0] or position not in rounds[0]:
        return None
    pairs = [(found[before], found[position]) for found in rounds]
    ratios = [after.figure(figure) / first.figure(figure) for first, after in pairs]
    return [first for first, _ in pairs], [after for _, after in pairs], *interval(ratios), STEPS[before].name


def table(climbs):
    lines, notes, opposite = [], [], []
    numbers = range(len(STEPS))
    for position in numbers[1:]:
        step = STEPS[position]
        for figure in FIGURES:
            published, source = step.published.get(figure, (None, ""))
            if figure in ("bytes", "trainer") and published is None:
                continue
            found = compared(step, figure, climbs, position, numbers)
            if found is None:
                continue
            before, after, ratio, low, high, against = found
            verdict = sign(published, low, high) if published is not None else ""
            said = "" if published is None else f"{text_of(published[0])} to {text_of(published[1])}" if isinstance(published, tuple) else text_of(published)
            values = [middle(runs, lambda run: run.figure(figure)) for runs in (before, after)]
            lines.append(f"| + {step.name}, {step.words} | {figure}, {FIGURES[figure]} | {against} | {values[0]:.0f} | {values[1]:.0f} | "
                         f"**{text_of(ratio)}** [{text_of(low)}, {text_of(high)}] | {said} | {source} | {verdict} |")
            why = {"reader": lambda: explain_cpu(before, after, ratio, published, lambda run: run.operators, lambda run: run.reader_cpu),
                   "storage": lambda: explain_storage(before, after, ratio, published),
                   "bytes": lambda: explain_bytes(before, after), "trainer": lambda: explain_trainer(before, after, ratio, published)}[figure]()
            notes.append(f"- {step.name}, {figure}: {why}.")
            if verdict == "OPPOSITE":
                opposite.append(f"{step.name}, {figure}: x{text_of(ratio)}, published x{said}")
    head = ("| step | figure | against | before | after | ratio [95 %] | published | by | sign |\n|---|---|---|---|---|---|---|---|---|")
    return head + "\n" + "\n".join(lines) + "\n\nWhy, from the accounts of the runs:\n\n" + "\n".join(notes) + "\n", opposite


def cumulative(climbs):
    """Where each step stands against the baseline."""
    lines = ["| step | reader | published | disk | published | rows/s behind the disk | bytes read a row | requests per 1000 rows | over-read | peak RSS |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    sums = {"reader": {"base": 1.0, "FF": 2.00, "FM": 2.30}, "storage": {"base": 1.0, "FF": 0.03, "FM": 0.03, "CR": 0.99, "FR": 1.84, "LS": 2.41}}
    for number, step in enumerate(STEPS):
        cells = []
        for figure in ("reader", "storage"):
            ratios = [found[number].figure(figure) / found[0].figure(figure) for found in climbs[figure]]
            known = sums[figure].get(step.name)
            cells += [text_of(statistics.median(ratios)), text_of(known) if known else ""]
        disk = [found[number] for found in climbs["storage"]]
        read = [found[number] for found in climbs["reader"]]
        cells += [f"{middle(disk, lambda run: run.rate):.0f}", f"{middle(disk, lambda run: run.read_bytes):.0f}",
                  f"{middle(disk, lambda run: run.requests * 1e3):.1f}", f"{middle(disk, lambda run: 1 - run.wanted_bytes / run.read_bytes):.0%}",
                  f"{middle(read, lambda run: run.peak_bytes / 2**20):.0f} MiB"]
        lines.append(f"| {step.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="a quarter of the features, few rounds: signs, no intervals worth the name")
    parser.add_argument("--rounds", type=int, help="of the reader and the trainer (default 7, quick 3)")
    parser.add_argument("--disk-rounds", type=int, help="(default 3, quick 1)")
    parser.add_argument("--seconds", type=float, help="CPU time of a run of the reader (default 1, quick 0.2)")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--stripe-rows", type=int, default=2048)
    parser.add_argument("--features", type=float, help="share of the published feature counts (default 1/8, quick 1/32)")
    parser.add_argument("--jobs", type=int, default=300, help="in the log from which popularity comes")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figures", default="reader,storage,trainer", help="leave some out: reader,storage,trainer")
    parser.add_argument("--markdown", type=pathlib.Path, help="writes the tables here too")
    parser.add_argument("--keep", action="store_true", help="keeps tables and recorded runs, and says where")
    options = parser.parse_args()
    unknown = set(options.figures.split(",")) - {"reader", "storage", "trainer"}
    if unknown:
        parser.error(f"no figure {', '.join(sorted(map(repr, unknown)))}: --figures takes reader, storage and trainer")
    options.headrace = options.headrace.resolve()
    quick = options.quick
    options.rounds = options.rounds or (3 if quick else 7)
    options.disk_rounds = options.disk_rounds or (1 if quick else 3)
    options.seconds = options.seconds or (0.2 if quick else 1.0)
    options.features = options.features or (0.03125 if quick else 0.125)
    begin = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ladder."))
    try:
        ladder = Ladder(options, folder)
        ladder.make_tables()
        everything = list(range(len(STEPS)))
        late = [number for number in everything if STEPS[number].name in ("RB", "CL", "DD")]
        plans = {"reader": (everything, options.rounds), "storage": (everything, options.disk_rounds),
                 "trainer": (late, max(1, options.rounds // 2))}
        climbs = {figure: ladder.climb(figure, *plans[figure]) for figure in options.figures.split(",")}
        text, opposite = table(climbs)
        text = (f"{options.rows} rows, {options.features:g} of rm1's features, stripes of {options.stripe_rows} rows (from LS on "
                f"{4 * options.stripe_rows}), {options.rounds} rounds of the reader, {options.disk_rounds} of the disk; load "
                f"{os.getloadavg()[0]:.1f}; {(time.monotonic() - begin) / 60:.1f} minutes\n\n{text}")
        if "reader" in climbs and "storage" in climbs:
            text += f"\nAgainst the baseline:\n\n{cumulative(climbs)}"
        print(text)
        if options.markdown:
            options.markdown.write_text(text)
        for line in opposite:
            print("OPPOSITE:", line)
        return 3 if opposite else 0
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
