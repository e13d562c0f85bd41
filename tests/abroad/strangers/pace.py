"""Options and the rate line, shared by the programs."""
import argparse
import time


def options(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--fix", action="store_true", help="with the change that lifts the limit")
    parser.add_argument("--fix2", action="store_true", help="with cheaper loading, where that must not help")
    for name, default in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


class Pace:
    def __init__(self, seconds):
        self.seconds, self.warm = seconds, min(1.0, 0.2 * seconds)
        self.begin = self.start = None
        self.count = self.skipped = 0

    def tick(self, count=1):
        """Call it after each batch; True when the time is over."""
        self.last = time.monotonic()
        if self.begin is None:
            self.begin = self.last
        self.count += count
        if self.start is None and self.last - self.begin >= self.warm:
            self.start, self.skipped = self.last, self.count
        return self.last - self.begin >= self.seconds

    def show(self):
        print(f"rate {(self.count - self.skipped) / (self.last - self.start):.3f} batches/s", flush=True)


def timed(batches, seconds):
    """Passes batches on until the time is over, then prints the rate."""
    pace = Pace(seconds)
    for batch in batches:
        yield batch
        if pace.tick():
            break
    pace.show()
