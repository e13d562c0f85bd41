"""What watching a DataLoader costs: the rate of tests/abroad/programs/fast.py (some thousand batches a second) as it is, with
the import hook alone, and under `headrace profile`, in turns. Prints the median of the pairs' losses.

With --together the two of a pair run at the same time, one on each half of the cores, and once more with the halves swapped. The
recorder, and all that it starts, runs on the half of the program that it watches. The other program runs some seconds longer, as it
starts sooner. "as it is, beside itself" shows what the method makes of no difference, but for that.

    python3 tests/abroad/overhead.py HEADRACE PYTHON [--pairs 30] [--seconds 3] [--program fast] [--together] [-- OPTION...]

OPTIONs are the program's: `-- --item_us 150` makes some two thousand batches a second of fast. `--program jpeg` decodes images. --way leaves the
others out.
"""
import argparse
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOOK = HERE.parent.parent / "probes/python/headrace/hook"
PLAIN, ITSELF = "as it is", "as it is, beside itself"
LONGER_S = 3  # than recorders take to start

sys.path.insert(0, str(HERE.parent))
from halves import halves, pinned  # noqa: E402


def of_median(values):
    """95 % interval of the median, by its order statistics."""
    values, n = sorted(values), len(values)
    below = 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if below > 0.025:
            return values[max(0, k - 1)], values[min(n - 1, n - k)]
    return values[0], values[-1]


class Way:
    """How the program is started, and how to read its rate."""

    def __init__(self, words, more):
        self.words, self.more = words, more

    def start(self, cpus=()):
        words = pinned(self.words, cpus) if cpus else self.words
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=dict(os.environ, **self.more))

    @staticmethod
    def rate(started):
        out = started.communicate()[0]
        if started.returncode != 0:
            raise subprocess.CalledProcessError(started.returncode, started.args)
        return float(re.search(r"^rate ([\d.]+)", out, re.M)[1])


def in_turns(ways, pairs):
    """The rate of the program as it is, and what part of it each way loses, by pair."""
    rates = {way: [] for way in ways}
    for pair in range(pairs):
        for way in list(ways) if pair % 2 == 0 else reversed(ways):
            rates[way].append(Way.rate(ways[way].start()))
    base = rates.pop(PLAIN)
    return base, {way: [1 - rate / plain for rate, plain in zip(seen, base)] for way, seen in rates.items()}


def together(ways, pairs, beside):
    """The same, `beside` at the same time; each loss is the geometric mean of both halves'."""
    base, losses = [], {ITSELF if way == PLAIN else way: [] for way in ways}
    for pair in range(pairs):
        for way in list(losses) if pair % 2 == 0 else reversed(losses):
            watched, ratios = ways[PLAIN if way == ITSELF else way], []
            for cpus in (halves(), halves()[::-1]):
                # Which of the two starts first makes a difference, too.
                both = [(beside, cpus[0]), (watched, cpus[1])]
                order = both if (pair + len(ratios)) % 2 == 0 else both[::-1]
                started = {one: one.start(on) for one, on in order}
                try:
                    base.append(Way.rate(started[beside]))
                    ratios.append(Way.rate(started[watched]) / base[-1])
                finally:
                    for process in started.values():
                        process.kill()
            losses[way].append(1 - math.sqrt(ratios[0] * ratios[1]))
            print(f"{pair} {way}: {100 * losses[way][-1]:+.1f} %", file=sys.stderr, flush=True)
    return base, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("python")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--program", default="fast")
    parser.add_argument("--way", action="append", choices=["with the hook", "under profile --no-hook", "under profile"],
                        help="only this way, beside the program as it is; may be given several times")
    parser.add_argument("--together", action="store_true", help="both of a pair at the same time, not one after the other")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:end]), words[end + 1:]
    if arguments.pairs < 2:
        parser.error("--pairs: at least 2")
    headrace = os.path.abspath(arguments.headrace)

    def program(seconds):
        return [arguments.python, str(HERE / "programs" / (arguments.program + ".py")), "--seconds", str(seconds), *options]

    command = program(arguments.seconds)
    library = pathlib.Path(headrace).parent / "libheadrace_account.so.1"
    with tempfile.TemporaryDirectory(prefix="headrace-overhead-") as folder:
        profile = [headrace, "profile", "-q", "--db", folder + "/runs.db"]
        ways = {
            PLAIN: Way(command, {}),
            "with the hook": Way(command, {"PYTHONPATH": str(HOOK), "HEADRACE_ACCOUNT_LIBRARY": str(library)}),
            "under profile --no-hook": Way([*profile, "--no-hook", "--", *command], {}),
            "under profile": Way([*profile, "--", *command], {}),
        }
        if arguments.way:
            ways = {way: how for way, how in ways.items() if way in [PLAIN, *arguments.way]}
        if arguments.together:
            base, losses = together(ways, arguments.pairs, Way(program(arguments.seconds + LONGER_S), {}))
        else:
            base, losses = in_turns(ways, arguments.pairs)
    print(f"{PLAIN}: {statistics.median(base):.0f} batches/s, median of {len(base)}")
    for way, seen in losses.items():
        seen = [100 * loss for loss in seen]
        low, middle, high = statistics.quantiles(seen, n=4)
        least, most = of_median(seen)
        of = "95 % of the median" if len(seen) >= 6 else "all"
        print(f"{way}: {middle:+.1f} % of the rate lost ({of} [{least:+.1f}, {most:+.1f}]; quartiles "
              f"[{low:+.1f}, {high:+.1f}])")


if __name__ == "__main__":
    main()
