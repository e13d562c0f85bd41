"""What the import hook adds to a batch of tf.data: the same iterator asked with it and without it in turns, in one process.

    PYTHONPATH=probes/python/headrace/hook:probes/python HEADRACE_ACCOUNT_LIBRARY=build/libheadrace_account.so.1 \\
        python3 tests/abroad/programs/tf_cost.py [ROUNDS]
"""
import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

BATCHES = 1000


def cpu_ns(ask, iterator):
    begin = time.thread_time_ns()
    for _ in range(BATCHES):
        ask(iterator)
    return (time.thread_time_ns() - begin) / BATCHES


def main():
    hooked = OwnedIterator.__next__
    plain = getattr(hooked, "__wrapped__", None)
    if plain is None:
        sys.exit("the hook is not in: see the first lines of this file")
    iterator = iter(tf.data.Dataset.range(1 << 40).map(lambda x: x + 1, num_parallel_calls=2).batch(8).prefetch(64))
    for _ in range(200):
        hooked(iterator)
    bases, added = [], []
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 40):
        order = (plain, hooked) if number % 2 else (hooked, plain)
        took = {ask: cpu_ns(ask, iterator) for ask in order}
        bases.append(took[plain])
        added.append(took[hooked] - took[plain])
    low, middle, high = statistics.quantiles(added, n=4)
    print("a batch: %.0f ns of CPU without the hook; with it %.0f [%.0f, %.0f] more" % (statistics.median(bases), middle, low, high))


if __name__ == "__main__":
    main()
