"""Forecasts a glacier's melt with a small recurrent network, and a thread watches the stations meanwhile for anything odd.

--fix: the watch runs as a process."""
import math
import multiprocessing
import random
import threading

import torch
from torch import nn

from pace import Pace, options

STATIONS, WINDOW = 12, 24


def watch(over):
    """Looks over the stations' readings again and again: spread, trend, spikes."""
    rng = random.Random(0)
    readings = [[rng.gauss(0, 1) for _ in range(240)] for _ in range(STATIONS)]
    alarms = 0
    while not over.is_set():
        for series in readings:
            mean = sum(series) / len(series)
            spread = math.sqrt(sum((value - mean) ** 2 for value in series) / len(series))
            for place, value in enumerate(series):
                near = series[max(0, place - 3):place + 4]
                if abs(value - sum(near) / len(near)) > 3 * spread:
                    alarms += 1
            series.append(rng.gauss(0, 1))
            del series[0]
    return alarms


class Melt(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(STATIONS, 48), nn.Linear(48, STATIONS)

    def forward(self, window):
        state = window.new_zeros(window.shape[0], 48)
        for hour in range(window.shape[1]):
            state = self.cell(window[:, hour], state)
        return self.head(state)


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    over = multiprocessing.Event() if args.fix else threading.Event()
    watcher = (multiprocessing.Process if args.fix else threading.Thread)(target=watch, args=(over,), daemon=True)
    watcher.start()
    history = torch.randn(5000, STATIONS).cumsum(0) / 50
    model = Melt()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    pace = Pace(args.seconds)
    while True:
        starts = torch.randint(len(history) - WINDOW - 1, (32,)).tolist()
        window = torch.stack([history[start:start + WINDOW] for start in starts])
        target = torch.stack([history[start + WINDOW] for start in starts])
        loss = nn.functional.mse_loss(model(window), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    over.set()
    watcher.join(5)
    pace.show()


if __name__ == "__main__":
    main()
