#!/usr/bin/env python3
"""Real comparisons for `comparisons judge`: `headrace compare` on a pipeline that computes, of sides that are equal and of sides of
which one is planted to be 3 % faster. Lines are appended to FILE, and what FILE has counts: the same command goes on after a stop.

usage: comparisons.py HEADRACE PART --out FILE --count N [--seconds S] [--pairs P] [--time T] [--spin MS]
  runs      N groups of P pairs of runs of one pipeline, by `compare` without early stopping; judged by all orders of their blocks.
            Groups are runs of different times and independent but for what the machine does for hours; the orders drawn for one
            group share its runs and are not. A group takes 2 P (S + about 0.7) seconds.
  windows   N groups of 2 P windows of 0.5 s of a long run each, every second one left out so that neighbours are less alike. Shows
            the machine's noise, not what differs from run to run.
  equal     N comparisons by the command as users call it, two equal sides, T seconds each at most
  planted   N comparisons, one side with 3 % less to compute, A and B in turn; T seconds each at most

then: build/comparisons judge FILE
Wants a machine that does nothing else.   exit: 0 all made, 1 a comparison failed
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

CHANGE = 0.03
WINDOW_S = 0.5


def pipeline(spin_ms):
    return ('pipeline = { name = "spin" }\nsource = { synthetic = { rows = 64, bytes = "4KiB" }, epochs = 0 }\n'
            'consumer = { step = "0ms" }\n'
            f'stage = [ {{ name = "work", operators = [{{ spin = "{spin_ms:.5f}ms" }}] }} ]\n')


def run(command, allowed):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def write(folder, name, spin_ms):
    path = folder / f"{name}.toml"
    path.write_text(pipeline(spin_ms))
    return path


def compare(options, folder, a, b, more):
    """The command's JSON. 4: it cannot tell."""
    database = folder / "runs.db"
    for old in folder.glob("runs.db*"):
        old.unlink()
    return json.loads(run([options.headrace, "compare", str(a), str(b), "--duration", f"{options.seconds}s", "--json", "--quiet",
                           "--db", str(database)] + more, {0, 4}))


def in_order(result):
    """rows/s of the runs in the order in which they ran."""
    values = []
    for i, b_first in enumerate(result["b_first"]):
        pair = [result[side]["samples"][i]["rows_per_s"] for side in ("a", "b")]
        if None in pair:
            raise RuntimeError(f"pair {i + 1}: no rows per second")
        values += pair[::-1] if b_first else pair
    return values


def runs(options, folder, number):
    a, b = write(folder, "a", options.spin), write(folder, "b", options.spin)
    result = compare(options, folder, a, b, ["--pairs", str(options.pairs), "--no-early-stop", "--seed", str(number + 1)])
    return ["aa", "runs", str(number), " ".join(f"{v:.6g}" for v in in_order(result))]


def windows(options, folder, number):
    need = 4 * options.pairs
    path, database = write(folder, "long", options.spin), folder / "long.db"
    for old in folder.glob("long.db*"):
        old.unlink()
    seconds = need * WINDOW_S + 3
    run([options.headrace, "run", str(path), "--duration", f"{seconds:.0f}s", "--db", str(database), "--name", "long", "--quiet"], {0})
    rows = json.loads(run([options.headrace, "query", "--db", str(database), "--format", "json",
                           "SELECT start_ns, duration_ns, rows_count FROM step_interval ORDER BY start_ns"], {0}))["rows"]
    rates, start, count, length = [], None, 0, 0
    for row in rows[2:-2]:
        start = row["start_ns"] if start is None else start
        count += row["rows_count"]
        length += row["duration_ns"]
        if length >= WINDOW_S * 1e9:
            rates.append(count / (length * 1e-9))
            start, count, length = None, 0, 0
    kept = rates[::2][:2 * options.pairs]
    return ["aa", "windows", str(number), " ".join(f"{v:.6g}" for v in kept)]


def by_command(options, folder, number, planted):
    less = options.spin / (1 + CHANGE)
    faster = number % 2 == 0  # B is
    a = write(folder, "a", less if planted and not faster else options.spin)
    b = write(folder, "b", less if planted and faster else options.spin)
    began = time.monotonic()
    result = compare(options, folder, a, b, ["--time", f"{options.time}s", "--pairs", str(options.pairs), "--seed", str(number + 1)])
    seconds = time.monotonic() - began
    metric = result["metrics"][0]
    side = ("faster" if faster else "slower") if planted else "equal"
    verdict = result["verdict"]
    if not planted and verdict in ("faster", "slower"):
        verdict = "different"
    # The change as B over A; of a slower B the sign is turned, so that all are changes for the better.
    sign = 1 if faster or not planted else -1
    change, low, high = (sign * math.log1p(metric[key]) if metric[key] is not None else 0
                         for key in ("change", "change_low", "change_high"))
    values = in_order(result)
    ratios = [math.log(values[i + 1] / values[i]) for i in range(0, len(values), 2)]
    mean = sum(ratios) / len(ratios)
    noise = math.sqrt(sum((r - mean) ** 2 for r in ratios) / max(1, len(ratios) - 1))
    return ["planted", side, verdict, str(result["units_count"]), f"{seconds:.1f}", f"{change:.6f}", f"{low:.6f}", f"{high:.6f}",
            f"{noise:.6f}"]


PARTS = {
    "runs": (runs, "aa\truns\t"),
    "windows": (windows, "aa\twindows\t"),
    "equal": (lambda o, f, n: by_command(o, f, n, False), "planted\tequal\t"),
    "planted": (lambda o, f, n: by_command(o, f, n, True), ("planted\tfaster\t", "planted\tslower\t")),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headrace")
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--count", required=True, type=int)
    parser.add_argument("--seconds", type=float, default=1, help="of a run (1)")
    parser.add_argument("--pairs", type=int, default=12, help="of a comparison at most (12)")
    parser.add_argument("--time", type=float, default=55, help="of a comparison by the command (55)")
    parser.add_argument("--spin", type=float, default=1, help="milliseconds that the pipeline computes for 64 rows (1)")
    options = parser.parse_args()
    make, prefix = PARTS[options.part]
    done = 0
    if options.out.exists():
        done = sum(line.startswith(prefix) for line in options.out.read_text().splitlines())
    for number in range(done, options.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                fields = make(options, pathlib.Path(folder), number)
            except (RuntimeError, KeyError, ValueError) as error:
                print(f"comparisons.py: {options.part} {number}: {error}", file=sys.stderr)
                return 1
        with options.out.open("a") as out:
            out.write("\t".join(fields) + "\n")
        print(f"{options.part}: {number + 1} of {options.count}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
