"""Orbits of satellites, streamed page by page from a catalogue with a free plan: so many pages a second, and our own limiter keeps to it.

--fix: the paid plan, 40 times as many."""
import time

import numpy as np
import torch
from datasets import Features, IterableDataset, Sequence, Value
from torch.utils.data import DataLoader

from pace import Pace, options

FREE_PLAN, PAID_PLAN = 20, 800
PAGE = 8


class RateLimiter:
    """At most `rate` calls of acquire() a second."""

    def __init__(self, rate):
        self.interval = 1.0 / rate
        self.next_slot = time.monotonic()

    def acquire(self):
        now = time.monotonic()
        self.next_slot = max(self.next_slot, now - self.interval)
        if self.next_slot > now:
            time.sleep(self.next_slot - now)
        self.next_slot += self.interval


def get_page(number):
    # The catalogue's client, here with its cache only.
    rng = np.random.default_rng(number)
    for _ in range(PAGE):
        mean_motion, eccentricity = rng.uniform(1, 16), rng.uniform(0, 0.3)
        phase = np.linspace(0, 2 * np.pi, 64)
        radius = (1 - eccentricity ** 2) / (1 + eccentricity * np.cos(phase))
        yield {"track": (radius + rng.normal(0, 0.01, 64)).astype(np.float32).tolist(), "motion": mean_motion}


def catalogue(pages_per_second):
    limiter = RateLimiter(pages_per_second)
    number = 0
    while True:
        limiter.acquire()
        yield from get_page(number)
        number += 1


def normalize(row):
    low, high = min(row["track"]), max(row["track"])
    return {"track": [(value - low) / (high - low + 1e-6) for value in row["track"]], "motion": row["motion"] / 16}


def main():
    args = options()
    torch.set_num_threads(1)
    features = Features({"track": Sequence(Value("float32")), "motion": Value("float32")})
    stream = IterableDataset.from_generator(catalogue, gen_kwargs={"pages_per_second": PAID_PLAN if args.fix else FREE_PLAN}, features=features)
    stream = stream.map(normalize).shuffle(seed=1, buffer_size=64).with_format("torch")
    loader = DataLoader(stream, batch_size=16, num_workers=1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    for rows in loader:
        loss = torch.nn.functional.mse_loss(model(rows["track"])[:, 0], rows["motion"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
