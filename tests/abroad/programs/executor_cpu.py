"""concurrent.futures with one process that computes; the fix is two processes."""
import collections
import concurrent.futures

import harness


def make(index):
    harness.burn(0.01)
    return bytes(1000)


def batches(processes):
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        waiting = collections.deque(pool.submit(make, i) for i in range(8))
        while True:
            yield waiting.popleft().result()
            waiting.append(pool.submit(make, 0))


if __name__ == "__main__":
    args = harness.options()
    harness.loop(harness.forever(lambda: batches(2 if args.fix else 1)), lambda batch: harness.burn(0.001), args.seconds)
