#!/usr/bin/env python3
"""What the Python package costs at one border, with accounts on and off: every form against the same loop without it,
in one process, in interleaved rounds (the order is shuffled), as median and quartiles of the rounds.

usage: python_cost.py [--library FILE] [--rounds N] [--calls N] [--json]
"On" and "off" are two copies of the package in one interpreter, one imported with HEADRACE_ACCOUNTS=off.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import statistics
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def copy_of_package(accounts):
    for name in [name for name in sys.modules if name.split(".")[0] == "headrace"]:
        del sys.modules[name]
    if accounts == "off":
        os.environ["HEADRACE_ACCOUNTS"] = "off"
    else:
        os.environ.pop("HEADRACE_ACCOUNTS", None)
    import headrace
    return headrace


def function(x):
    return x


def generator(n):
    for i in range(n):
        yield i


class Dataset:
    def __getitem__(self, index):
        return index


def bare_block(n):
    for i in range(n):
        pass


def bare_call(n):
    for i in range(n):
        function(i)


def bare_generator(n):
    for i in generator(n):
        pass


def forms(headrace):
    """(name, what is measured, the loop without the package)."""
    op = headrace.operator("decode")
    decorated, generated = op(function), op(generator)
    batches = [[0]] * 1000

    def block(n):
        for i in range(n):
            with op:
                pass

    def block_by_name(n):
        for i in range(n):
            with headrace.operator("decode"):
                pass

    def call(n):
        for i in range(n):
            decorated(i)

    def generate(n):
        for i in generated(n):
            pass

    def bare_batches(n):
        for _ in range(n // 1000):
            for batch in batches:
                pass

    def wrapped_batches(n):
        for _ in range(n // 1000):
            for batch in headrace.wrap(batches):
                pass

    def steps(n):
        for i in range(n):
            headrace.step(rows=1)

    yield "with op:", block, bare_block
    yield 'with headrace.operator("decode"):', block_by_name, bare_block
    yield "@op on a function, a call", call, bare_call
    yield "@op on a generator, an element", generate, bare_generator
    yield "wrap(iterable), a batch", wrapped_batches, bare_batches
    yield "headrace.step(), a step", steps, bare_block


def inner_forms(op):
    """Both borders without the Python around them, and what a DataLoader's worker does for each item."""
    from headrace import _loader, _operator
    plain = Dataset()
    own = _loader._MapItems(plain)
    begin, end, handle = _operator._begin, _operator._end, op.handle

    def calls(n):
        for i in range(n):
            begin(handle)
            end(handle)

    def items(n):
        for i in range(n):
            own[i]

    def bare_items(n):
        for i in range(n):
            plain[i]

    yield "the two calls of the library alone", calls, bare_block
    yield "wrap(DataLoader), an item in a worker", items, bare_items


def seconds(loop, calls):
    began = time.thread_time()  # other programs on the machine take wall time, not this
    loop(calls)
    return time.thread_time() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default=str(SOURCE / "build/libheadrace_account.so.1"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.calls = max(1000, options.calls // 1000 * 1000)
    os.environ["HEADRACE_ACCOUNT_LIBRARY"] = options.library
    sys.path.insert(0, str(SOURCE / "probes/python"))
    with tempfile.TemporaryDirectory(prefix="headrace-cost-") as folder:
        os.environ["HEADRACE_ACCOUNT_DIR"] = folder
        off = copy_of_package("off")
        cases = [(name, "off", loop, bare) for name, loop, bare in forms(off)]
        on = copy_of_package("on")
        if not on.open("python_cost"):
            print(f"skipped: no accounts with {options.library}", file=sys.stderr)
            return 77
        both = [case for case in forms(on)] + list(inner_forms(on.operator("decode")))
        cases += [(name, "on", loop, bare) for name, loop, bare in both]
        costs = {case[:2]: [] for case in cases}
        for case in cases:  # warm
            seconds(case[2], options.calls)
        shuffled = random.Random(int(os.environ.get("HEADRACE_SEED", "1")))
        for _ in range(options.rounds):
            shuffled.shuffle(cases)
            for name, state, loop, bare in cases:
                first, second = (bare, loop) if shuffled.random() < 0.5 else (loop, bare)
                times = {first: seconds(first, options.calls), second: seconds(second, options.calls)}
                costs[name, state].append((times[loop] - times[bare]) / options.calls * 1e9)
        on.close()
    rows = []
    for name in dict.fromkeys(case[0] for case in both):
        for state in ("on", "off"):
            if (name, state) in costs:
                lower, median, upper = statistics.quantiles(costs[name, state], n=4)
                rows.append({"form": name, "accounts": state, "median_ns": median, "lower_quartile_ns": lower,
                             "upper_quartile_ns": upper})
    if options.json:
        print(json.dumps({"python": platform.python_version(), "rounds": options.rounds, "calls": options.calls,
                          "costs": rows}, indent=1))
        return 0
    print(f"Python {platform.python_version()}, {options.rounds} rounds of {options.calls} calls; ns of CPU beyond the same "
          "loop without the package: median [quartiles]")
    for row in rows:
        print(f"  {row['form']:40} {row['accounts']:4} {row['median_ns']:7.0f} "
              f"[{row['lower_quartile_ns']:.0f}, {row['upper_quartile_ns']:.0f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
