"""Metric learning; the hardest triplets of each batch are mined in a Python loop."""
import queue
import threading

import numpy as np
import torch

from pace import Pace, options


def batches(out, stop, light):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 20))
    fixed = torch.zeros(48, 20), torch.arange(48) % 10
    while not stop.is_set():
        if light:
            item = fixed
        else:
            labels = rng.integers(0, 10, 48)
            item = torch.from_numpy((centres[labels] + rng.normal(size=(48, 20))).astype(np.float32)), torch.from_numpy(labels)
        while not stop.is_set():
            try:
                out.put(item, timeout=0.2)
                break
            except queue.Full:
                pass


def loop_loss(z, labels, margin=0.3):
    total, n = z.sum() * 0, 0
    for i in range(len(z)):
        d = (z[i] - z).square().sum(1)
        same = labels == labels[i]
        if same.sum() > 1 and (~same).any():
            total = total + (d[same].max() - d[~same].min() + margin).relu()
            n += 1
    return total / max(n, 1)


def tensor_loss(z, labels, margin=0.3):
    d = (z[:, None] - z[None]).square().sum(2)
    same = labels[:, None] == labels[None]
    return ((d * same).amax(1) - (d + 1e9 * same).amin(1) + margin).relu().mean()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16))
    optimiser = torch.optim.SGD(net.parameters(), 0.01)
    loss_of = tensor_loss if args.fix else loop_loss
    ready, stop = queue.Queue(4), threading.Event()
    feeder = threading.Thread(target=batches, args=(ready, stop, args.fix2), name="feeder")
    feeder.start()
    pace = Pace(args.seconds)
    while True:
        x, labels = ready.get()
        optimiser.zero_grad()
        loss_of(net(x), labels).backward()
        optimiser.step()
        if pace.tick():
            break
    stop.set()
    pace.show()
    feeder.join()
