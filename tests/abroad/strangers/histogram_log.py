"""Logs the histograms of all weights and gradients to a file of JSON lines."""
import json
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Signals(Dataset):
    def __init__(self, light):
        self.light = light
        self.t = np.linspace(0, 1, 256, dtype=np.float32)

    def __len__(self):
        return 10**7

    def __getitem__(self, index):
        if self.light:
            return self.t, index % 4
        return np.sin(2 * np.pi * (1 + index % 4) * self.t).astype(np.float32), index % 4


class Callback:
    def on_step(self, step, model):
        pass


class HistogramLogger(Callback):
    def __init__(self, path, every):
        self.file, self.every = open(path, "w"), every

    def on_step(self, step, model):
        if step % self.every:
            return
        for name, parameter in model.named_parameters():
            for kind, tensor in (("weight", parameter.detach()), ("grad", parameter.grad)):
                counts, edges = np.histogram(tensor.numpy(), bins=64)
                self.file.write(json.dumps({"step": step, "name": name, "kind": kind, "counts": counts.tolist(),
                                            "edges": edges.tolist()}) + "\n")


def run(loader, model, optimiser, callbacks, seconds):
    pace = Pace(seconds)
    for step, (x, y) in enumerate(loader):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        for callback in callbacks:
            callback.on_step(step, model)
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512), torch.nn.Tanh(),
                              torch.nn.Linear(512, 4))
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        run(DataLoader(Signals(args.fix2), batch_size=32, num_workers=1), net, torch.optim.SGD(net.parameters(), 0.01),
            [HistogramLogger(log.name, 50 if args.fix else 1)], args.seconds)
