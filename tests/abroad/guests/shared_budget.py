"""A licensed weather service allows the whole job 240 calls a second; the client's token bucket is shared by all loader workers.
--fix is what the forum says: num_workers 2 -> 6."""
import ctypes
import multiprocessing
import time

import numpy as np
import torch

from pace import Pace, options


class TokenBucket:
    def __init__(self, rate, burst):
        self.rate, self.burst = rate, burst
        self.tokens = multiprocessing.Value(ctypes.c_double, burst)
        self.filled = multiprocessing.Value(ctypes.c_double, time.monotonic(), lock=False)

    def take(self):
        while True:
            with self.tokens.get_lock():
                now = time.monotonic()
                self.tokens.value = min(self.burst, self.tokens.value + (now - self.filled.value) * self.rate)
                self.filled.value = now
                if self.tokens.value >= 1:
                    self.tokens.value -= 1
                    return
                missing = (1 - self.tokens.value) / self.rate
            time.sleep(missing)


class Stations(torch.utils.data.Dataset):
    def __init__(self, bucket):
        self.bucket = bucket
        self.history = np.random.default_rng(0).normal(12, 8, size=(500, 24 * 14)).astype(np.float32)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        self.bucket.take()
        series = self.history[index % 500]
        return torch.from_numpy(series[:-24]), torch.from_numpy(series[-24:])


def main():
    args = options()
    torch.set_num_threads(1)
    stations = Stations(TokenBucket(240.0, 4))
    loader = torch.utils.data.DataLoader(stations, batch_size=8, shuffle=False, num_workers=6 if args.fix else 2)
    model = torch.nn.Sequential(torch.nn.Linear(24 * 13, 128), torch.nn.ReLU(), torch.nn.Linear(128, 24))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    for past, day in loader:
        loss = (model(past) - day).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
