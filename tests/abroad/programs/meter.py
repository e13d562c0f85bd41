"""Counts batches for a given time and prints their rate, the start-up left out."""
import argparse
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--fix", action="store_true")
    return parser.parse_args()


class Meter:
    def __init__(self, seconds):
        self.seconds, self.warm = seconds, min(1.0, 0.25 * seconds)
        self.first = self.base = None
        self.count = self.base_count = 0

    def tick(self, count=1):
        """After each batch. True once the time is over."""
        now = time.perf_counter()
        if self.first is None:
            self.first = now
        self.count += count
        if self.base is None and now - self.first >= self.warm:
            self.base, self.base_count = now, self.count
        self.last = now
        return now - self.first >= self.seconds

    def show(self):
        if self.base is not None and self.last > self.base:
            print(f"rate {(self.count - self.base_count) / (self.last - self.base):.3f} batches/s", flush=True)
