"""What watching a DataLoader costs: the rate of tests/abroad/programs/fast.py (some thousand batches a second) as it is, with
the import hook alone, and under `headrace profile`, in turns. Prints the median of the pairs' losses with its quartiles.

    python3 tests/abroad/overhead.py HEADRACE PYTHON [--pairs 30] [--seconds 3] [--program fast]
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOOK = HERE.parent.parent / "probes/python/headrace/hook"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("python")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--program", default="fast")
    arguments = parser.parse_args()
    headrace = os.path.abspath(arguments.headrace)
    command = [arguments.python, str(HERE / "programs" / (arguments.program + ".py")), "--seconds", str(arguments.seconds)]
    library = pathlib.Path(headrace).parent / "libheadrace_account.so.1"
    with tempfile.TemporaryDirectory(prefix="headrace-overhead-") as folder:
        profile = [headrace, "profile", "-q", "--db", folder + "/runs.db", "--"]
        ways = {
            "as it is": (command, {}),
            "with the hook": (command, {"PYTHONPATH": str(HOOK), "HEADRACE_ACCOUNT_LIBRARY": str(library)}),
            "under profile --no-hook": (profile[:2] + ["--no-hook"] + profile[2:] + command, {}),
            "under profile": (profile + command, {}),
        }
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
        print(f"{way}: {middle:+.1f} % of the rate lost [{low:+.1f}, {high:+.1f}]")


if __name__ == "__main__":
    main()
