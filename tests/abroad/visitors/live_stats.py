"""A thread keeps a live page of statistics of the training, and never rests. --fix: it rests half a second after each page."""
import collections
import threading
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options


class LiveStats(threading.Thread):
    def __init__(self, rest):
        super().__init__(name="live-stats", daemon=True)
        self.rest = rest
        self.losses = collections.deque([1.0], maxlen=2000)
        self.page = ""

    def run(self):
        while True:
            kept = list(self.losses)
            mean = sum(kept) / len(kept)
            low, high = min(kept), max(kept)
            bins = [0] * 20
            for value in kept:
                place = int(20 * (value - low) / (high - low + 1e-9))
                bins[min(place, 19)] += 1
            smooth, curve = kept[0], []
            for value in kept:
                smooth = 0.98 * smooth + 0.02 * value
                curve.append(smooth)
            self.page = "\n".join([f"mean {mean:.4f}, now {curve[-1]:.4f}"] + ["#" * (60 * n // len(kept)) for n in bins])
            if self.rest:
                time.sleep(self.rest)


def main():
    args = options()
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(40000, 64), torch.randint(0, 10, (40000,)))
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    stats = LiveStats(0.5 if args.fix else 0)
    stats.start()
    pace = Pace(args.seconds)
    over = False
    while not over:
        for x, y in DataLoader(data, batch_size=64, shuffle=True, drop_last=True):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            stats.losses.append(loss.item())
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
