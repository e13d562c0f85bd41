"""Quarry blast or earthquake? Short records through Ray Data, a little net in the driver."""
import os
import time

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import numpy as np
import ray
import torch
from torch import nn

from pace import Pace, options


def shape(rows):
    k = rows["id"][:, None]
    t = np.arange(96)[None, :]
    wave = np.sin(t * (0.1 + (k % 17) * 0.01)) * np.exp(-t / (20 + k % 40))
    return {"wave": wave.astype(np.float32), "blast": (k[:, 0] % 17 > 8).astype(np.float32)}


def update(net, opt, wave, blast, whole):
    """SGD, the classic way: a step for each record; or one for the whole batch."""
    parts = [(wave, blast)] if whole else zip(wave[:, None], blast[:, None])
    for x, y in parts:
        opt.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y).backward()
        opt.step()


def main():
    o = options()
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.range(400_000, override_num_blocks=100).map_batches(shape, batch_size=1024)
    net = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    pace = Pace(o.seconds)
    over = False
    while not over:
        batches = iter(data.iter_batches(batch_size=64, prefetch_batches=4))
        for batch in batches:
            update(net, opt, torch.as_tensor(np.array(batch["wave"])), torch.as_tensor(np.array(batch["blast"])), o.fix)
            over = pace.done()
            if over:
                break
        batches.close()
    pace.show()
    time.sleep(0.5)  # the executor's threads end first
    ray.shutdown()


if __name__ == "__main__":
    main()
