"""What watching a DataLoader costs: the rate of tests/abroad/programs/fast.py (some thousand batches a second) as it is, with
the import hook alone, and under `headrace profile`, in turns. Prints the median of the pairs' losses.

    python3 tests/abroad/overhead.py HEADRACE PYTHON [--pairs 30] [--seconds 3] [--program fast] [-- OPTION...]

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


def of_median(values):
    """95 % interval of the median, by its order statistics."""
    values, n = sorted(values), len(values)
    below = 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if below > 0.025:
            return values[max(0, k - 1)], values[min(n - 1, n - k)]
    return values[0], values[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("python")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--program", default="fast")
    parser.add_argument("--way", action="append", choices=["with the hook", "under profile --no-hook", "under profile"],
                        help="only this way, beside the program as it is; may be given several times")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:end]), words[end + 1:]
    headrace = os.path.abspath(arguments.headrace)
    command = [arguments.python, str(HERE / "programs" / (arguments.program + ".py")), "--seconds", str(arguments.seconds)]
    command += options
    library = pathlib.Path(headrace).parent / "libheadrace_account.so.1"
    with tempfile.TemporaryDirectory(prefix="headrace-overhead-") as folder:
        profile = [headrace, "profile", "-q", "--db", folder + "/runs.db", "--"]
        ways = {
            "as it is": (command, {}),
            "with the hook": (command, {"PYTHONPATH": str(HOOK), "HEADRACE_ACCOUNT_LIBRARY": str(library)}),
            "under profile --no-hook": (profile[:2] + ["--no-hook"] + profile[2:] + command, {}),
            "under profile": (profile + command, {}),
        }
        if arguments.way:
            ways = {way: how for way, how in ways.items() if way in ["as it is"] + arguments.way}
        rates = {way: [] for way in ways}
        for pair in range(arguments.pairs):
            order = list(ways)
            for way in order if pair % 2 == 0 else reversed(order):
                words, more = ways[way]
                done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, **more), check=True)
                rates[way].append(float(re.search(r"^rate ([\d.]+)", done.stdout, re.M)[1]))
    base = rates["as it is"]
    print(f"as it is: {statistics.median(base):.0f} batches/s, median of {len(base)}")
    for way in list(ways)[1:]:
        losses = [100 * (1 - rate / plain) for rate, plain in zip(rates[way], base)]
        low, middle, high = statistics.quantiles(losses, n=4)
        least, most = of_median(losses)
        of = "95 % of the median" if len(losses) >= 6 else "all"
        print(f"{way}: {middle:+.1f} % of the rate lost ({of} [{least:+.1f}, {most:+.1f}]; quartiles "
              f"[{low:+.1f}, {high:+.1f}])")


if __name__ == "__main__":
    main()
