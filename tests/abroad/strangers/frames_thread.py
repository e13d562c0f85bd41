"""Sales of shops as windows; a thread groups the frame for each batch."""
import queue
import threading

import numpy as np
import pandas as pd
import torch

from pace import Pace, options


def sales(rows):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"shop": rng.integers(0, 50, rows), "day": rng.integers(0, 365, rows), "amount": rng.gamma(2.0, 10.0, rows)})


class WindowThread(threading.Thread):
    def __init__(self, frame, once, days=28):
        super().__init__(daemon=True, name="windows")
        self.frame, self.days, self.queue = frame, days, queue.Queue(2)
        self.table = self.pivot(frame) if once else None

    def pivot(self, part):
        return part.pivot_table(index="shop", columns="day", values="amount", aggfunc="median").fillna(0).to_numpy(np.float32)

    def window(self, first):
        if self.table is not None:
            return self.table[:, first:first + self.days]
        part = self.frame[(self.frame.day >= first) & (self.frame.day < first + self.days)]
        return self.pivot(part)

    def run(self):
        k = 0
        while True:
            self.queue.put(self.window(k * 11 % (365 - self.days)))
            k += 1


def main():
    args = options()
    torch.set_num_threads(1)
    source = WindowThread(sales(300_000), once=args.fix)
    source.start()
    net = torch.nn.Sequential(torch.nn.Linear(28, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimiser = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    while True:
        x = torch.from_numpy(source.queue.get())
        optimiser.zero_grad()
        net(x / 20).square().mean().backward()
        optimiser.step()
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
