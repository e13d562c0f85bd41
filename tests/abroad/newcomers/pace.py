"""Options and the rate that every program here shares."""
import argparse
import time


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--fix", action="store_true", help="with the change that lifts the limit")
    parser.add_argument("--fix2", action="store_true", help="with cheaper loading, where the trainer is the limit")
    return parser.parse_args()


class Pace:
    """Counts batches; the first quarter (at most a second) warms up and isn't counted."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.warm = min(1.0, seconds / 4)
        self.began = self.start = None
        self.total = self.before = 0

    def over(self, batches=1):
        """Called after each batch. True when the time is up."""
        now = time.perf_counter()
        if self.began is None:
            self.began = now
        self.total += batches
        if self.start is None and now - self.began >= self.warm:
            self.start, self.before = now, self.total
        self.end = now
        return now - self.began >= self.seconds

    def report(self):
        print("rate %.3f batches/s" % ((self.total - self.before) / max(self.end - self.start, 1e-9)), flush=True)
