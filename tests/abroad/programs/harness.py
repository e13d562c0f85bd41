"""What the programs share: options, and a loop that says its own rate."""
import argparse
import time


def options(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--fix", action="store_true", help="with the change that lifts the limit")
    parser.add_argument("--seconds", type=float, default=8)
    for name, default in more.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    return parser.parse_args()


def burn(seconds):
    """Computes for that long on a CPU, by the thread's own clock."""
    end = time.thread_time() + seconds
    x = 1.0
    while time.thread_time() < end:
        for _ in range(200):
            x = x * 1.0000001 + 1e-9
    return x


def loop(epochs, step, seconds):
    """Takes batches of epoch after epoch until the time is over; `epochs` gives iterables. The first batch warms up."""
    begin = wait = None
    count = 0
    waited = 0.0
    over = False
    for batches in epochs:
        asked = time.monotonic()
        for batch in batches:
            now = time.monotonic()
            if begin is None:
                begin = now
            else:
                waited += now - asked
                count += 1
            step(batch)
            if now - begin > seconds:
                over = True
                break
            asked = time.monotonic()
        if over:
            break
    took = time.monotonic() - begin
    print("rate %.3f batches/s, waited %.1f %%" % (count / took, 100 * waited / took), flush=True)


def forever(make):
    while True:
        yield make()
