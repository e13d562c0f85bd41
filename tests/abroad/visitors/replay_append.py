"""A thread appends transitions to a replay memory and draws batches from it; each append makes the arrays anew (np.concatenate).
--fix: a ring that is written in place."""
import queue
import threading

import numpy as np
import torch

from pace import Pace, options

CAPACITY, WIDTH = 40000, 256


class Growing:
    def __init__(self, states):
        self.states = states

    def append(self, states):
        self.states = np.concatenate([self.states, states])[-CAPACITY:]


class Ring:
    def __init__(self, states):
        self.states, self.at = states, 0

    def append(self, states):
        places = (self.at + np.arange(len(states))) % CAPACITY
        self.states[places] = states
        self.at = (self.at + len(states)) % CAPACITY


class ReplayFeeder(threading.Thread):
    def __init__(self, memory):
        super().__init__(name="replay", daemon=True)
        self.memory, self.ready = memory(np.random.rand(CAPACITY, WIDTH).astype(np.float32)), queue.Queue(4)
        self.rng = np.random.default_rng(0)

    def run(self):
        while True:
            self.memory.append(self.rng.random((16, WIDTH), np.float32))
            picked = self.rng.integers(0, CAPACITY, 64)
            self.ready.put(torch.from_numpy(self.memory.states[picked]))


def main():
    args = options()
    torch.set_num_threads(1)
    feeder = ReplayFeeder(Ring if args.fix else Growing)
    feeder.start()
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    while True:
        states = feeder.ready.get()
        loss = (net(states).squeeze(1) - states.mean(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
