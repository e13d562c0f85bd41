"""A learner that looks now and then whether the actor's next episode has arrived."""
import os
import tempfile
import time

import numpy as np
import torch

import stores
from pace import Pace, options


class Episodes:
    def __init__(self, folder, interval):
        self.folder, self.interval, self.number = folder, interval, 0

    def __iter__(self):
        while True:
            time.sleep(self.interval)
            names = sorted(n for n in os.listdir(self.folder) if n.endswith(".npy"))
            for name in names:
                path = os.path.join(self.folder, name)
                episode = torch.from_numpy(np.load(path))
                os.remove(path)
                yield episode


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(12, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh())
        self.head = torch.nn.Linear(256, 4)

    def forward(self, x):
        return self.head(self.body(x))


if __name__ == "__main__":
    args = options()
    policy, pace = Policy(), Pace(args.seconds)
    optimiser = torch.optim.Adam(policy.parameters())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stores.start("actor.py", folder)
        for episode in Episodes(folder, interval=0.005 if args.fix else 0.05):
            optimiser.zero_grad()
            policy(episode).log_softmax(1).mean().backward()
            optimiser.step()
            if pace.tick():
                break
        pace.show()
