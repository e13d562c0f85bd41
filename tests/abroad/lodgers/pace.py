"""What every program here shares: its options, and the count of batches."""
import argparse
import time


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--fix", action="store_true", help="with the program's own change")
    return parser.parse_args()


class Pace:
    """The first fifth of the time (a second at most) isn't counted."""

    def __init__(self, seconds):
        self.seconds, self.warm = seconds, min(1.0, seconds / 5)
        self.first = self.since = self.now = None
        self.batches = self.skipped = 0

    def done(self, batches=1):
        """After each batch; True when the time is over."""
        self.now = time.monotonic()
        self.batches += batches
        if self.first is None:
            self.first = self.now
        if self.since is None and self.now - self.first >= self.warm:
            self.since, self.skipped = self.now, self.batches
        return self.now - self.first >= self.seconds

    def show(self):
        if self.since is None or self.now == self.since:
            self.since, self.skipped = self.first, 1
        print(f"rate {(self.batches - self.skipped) / max(self.now - self.since, 1e-9):.3f} batches/s", flush=True)
