"""Python code in a pool of threads: the interpreter's lock lets one of them run; the fix is processes."""
import concurrent.futures

import harness


def make(index):
    x = 0
    for i in range(60000):
        x += i * i
    return x


def batches(fix):
    kind = concurrent.futures.ProcessPoolExecutor if fix else concurrent.futures.ThreadPoolExecutor
    with kind(2) as pool:
        waiting = [pool.submit(make, i) for i in range(6)]
        while True:
            yield waiting.pop(0).result()
            waiting.append(pool.submit(make, 0))


if __name__ == "__main__":
    args = harness.options()
    harness.loop(harness.forever(lambda: batches(args.fix)), lambda batch: harness.burn(0.0005), args.seconds)
