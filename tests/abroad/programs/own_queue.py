"""Processes of its own that compute batches into a multiprocessing.Queue; the fix is two instead of one."""
import multiprocessing

import harness


def produce(queue):
    while True:
        harness.burn(0.008)
        queue.put(bytes(4000))


if __name__ == "__main__":
    args = harness.options()
    queue = multiprocessing.Queue(8)
    for _ in range(2 if args.fix else 1):
        multiprocessing.Process(target=produce, args=(queue,), daemon=True).start()

    def batches():
        while True:
            yield queue.get()

    harness.loop(harness.forever(batches), lambda batch: harness.burn(0.001), args.seconds)
