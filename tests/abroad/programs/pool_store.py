"""multiprocessing.Pool of two processes that wait for a store; the fix is eight processes."""
import multiprocessing
import time

import harness


def fetch(index):
    time.sleep(0.02)
    return bytes(1000)


if __name__ == "__main__":
    args = harness.options()

    def batches():
        with multiprocessing.Pool(8 if args.fix else 2) as pool:
            yield from pool.imap(fetch, range(1 << 16))

    harness.loop(harness.forever(batches), lambda batch: harness.burn(0.001), args.seconds)
