"""Reads lines of numbers in background threads, and fits a line to them."""
import multiprocessing
import queue
import threading

import numpy as np

from meter import Meter, arguments


def lines(seed):
    rng = np.random.default_rng(seed)
    return [",".join(f"{value:.5f}" for value in rng.normal(size=64)) for _ in range(512)]


def parse(line):
    total, row = 0.0, []
    for field in line.split(","):
        value = float(field)
        if value < 0:
            value = -value
        total += value
        row.append(value)
    return [value / total for value in row]


def produce(seed, out):
    text = lines(seed)
    while True:
        for first in range(0, 512, 256):
            out.put(np.array([parse(line) for line in text[first:first + 256]], dtype=np.float32))


def main():
    args = arguments()
    if args.fix:
        out = multiprocessing.Queue(4)
        makers = [multiprocessing.Process(target=produce, args=(seed, out), daemon=True) for seed in range(2)]
    else:
        out = queue.Queue(1)
        makers = [threading.Thread(target=produce, args=(seed, out), daemon=True) for seed in range(3)]
    for maker in makers:
        maker.start()
    weights = np.zeros(64, dtype=np.float32)
    meter = Meter(args.seconds)
    while True:
        batch = out.get()
        for _ in range(4):
            error = batch @ weights - 1
            weights -= 0.1 * (batch.T @ error) / len(batch)
        if meter.tick():
            break
    meter.show()
    if args.fix:
        for maker in makers:
            maker.terminate()


if __name__ == "__main__":
    main()
