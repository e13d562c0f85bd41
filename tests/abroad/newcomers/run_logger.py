"""Callbacks: one of them writes every weight's histogram as JSON after each batch. --fix writes at each 25th batch."""
import json
import os
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Sines(Dataset):
    def __init__(self, cheap):
        self.cheap = cheap
        self.t = torch.linspace(0, 1, 200)

    def __len__(self):
        return 100_000_000

    def __getitem__(self, i):
        if self.cheap:
            return self.t, 0
        return torch.sin(self.t * (i % 17 + 1)), i % 17


class Callback:
    def after_batch(self, learner):
        pass


class HistogramLogger(Callback):
    def __init__(self, path, every):
        self.file = open(path, "w")
        self.every = every

    def after_batch(self, learner):
        if learner.step % self.every:
            return
        record = {"step": learner.step, "loss": learner.loss.item()}
        for name, weight in learner.model.named_parameters():
            counts, edges = torch.histogram(weight.detach().flatten(), bins=64)
            record[name] = {"counts": counts.tolist(), "edges": edges.tolist(), "norm": weight.norm().item(),
                            "values": [round(v, 5) for v in weight.detach().flatten()[:4000].tolist()]}
        json.dump(record, self.file)
        self.file.write("\n")
        self.file.flush()
        os.fsync(self.file.fileno())


class Timer(Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def after_batch(self, learner):
        learner.stop = self.pace.over()


class Learner:
    def __init__(self, model, loader, callbacks):
        self.model, self.loader, self.callbacks = model, loader, callbacks
        self.opt = torch.optim.Adam(model.parameters())
        self.step, self.stop = 0, False

    def fit(self):
        for x, y in self.loader:
            self.loss = torch.nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            self.loss.backward()
            self.opt.step()
            self.step += 1
            for callback in self.callbacks:
                callback.after_batch(self)
            if self.stop:
                return


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(200, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                              torch.nn.Linear(64, 17))
    with tempfile.TemporaryDirectory() as folder:
        timer = Timer(args.seconds)
        logger = HistogramLogger(folder + "/log.jsonl", 25 if args.fix else 1)
        Learner(net, DataLoader(Sines(args.fix2), batch_size=16, num_workers=1), [logger, timer]).fit()
    timer.pace.report()
