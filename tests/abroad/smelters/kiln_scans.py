"""Grades glazed tiles from kiln scans; a multiprocessing pool reads the scans for the trainer."""
import multiprocessing
import shutil
import tempfile
from pathlib import Path

import numpy as np

from pace import Pace, options

SIDE, SCANS, BATCH, SHRINK = 512, 64, 32, 16
shelf = {}


def fire(folder):
    rng = np.random.default_rng(8)
    scans = rng.integers(0, 255, (SCANS, SIDE, SIDE, 3), dtype=np.uint8)
    np.save(folder / "scans.npy", scans)
    np.save(folder / "grades.npy", rng.integers(0, 2, SCANS))


def open_shelf(folder, small):
    shelf["scans"] = np.load(folder / "scans.npy", mmap_mode="r")
    shelf["grades"] = np.load(folder / "grades.npy")
    shelf["small"] = small


def read_scans(seed):
    start = seed * 7 % (SCANS - BATCH)
    scans = shelf["scans"][start:start + BATCH]
    if shelf["small"]:
        scans = thumbnail(scans)
    return np.array(scans), shelf["grades"][start:start + BATCH]


def thumbnail(scans):
    return scans[:, ::SHRINK, ::SHRINK]


class Grader:
    def __init__(self, inputs):
        self.weight, self.bias = np.zeros(inputs, np.float32), 0.0

    def fit(self, scans, grades):
        x = scans.reshape(len(scans), -1).astype(np.float32) / 255 - 0.5
        chance = 1 / (1 + np.exp(-(x @ self.weight + self.bias)))
        error = (chance - grades).astype(np.float32)
        self.weight -= 0.01 * x.T @ error / len(error)
        self.bias -= 0.01 * float(error.mean())
        return float(np.abs(error).mean())


def batch_numbers(limit):
    """Numbers for the pool, only so far ahead as the trainer's slots allow."""
    number = 0
    while limit.acquire() and not limit.closed:
        yield number
        number += 1


class Slots:
    def __init__(self, count):
        self.free, self.closed = multiprocessing.get_context("fork").Semaphore(count), False

    def acquire(self):
        return self.free.acquire()

    def release(self):
        self.free.release()


def main():
    args = options()
    folder = Path(tempfile.mkdtemp(prefix="kiln"))
    try:
        fire(folder)
        slots = Slots(4)
        model, pace = Grader((SIDE // SHRINK) ** 2 * 3), Pace(args.seconds)
        with multiprocessing.get_context("fork").Pool(2, open_shelf, (folder, args.fix)) as pool:
            for scans, grades in pool.imap(read_scans, batch_numbers(slots)):
                error = model.fit(scans if args.fix else thumbnail(scans), grades)
                slots.release()
                if pace.done():
                    break
            slots.closed = True
            slots.release()
        print(f"error {error:.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
