"""Ray Data: night pictures of camera traps are freed of noise by an actor, then counted: deer or none.

--fix: concurrency 1 -> 2, with half a CPU each."""
import gc
import logging
import os
import time

os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import numpy as np
import ray
import torch

from pace import Pace, options

SIDE, BATCH = 96, 8


def shoot(rows):
    """The pictures, as the camera has them."""
    pictures = [np.random.default_rng(number).random((SIDE, SIDE), np.float32) for number in rows["id"]]
    return {"picture": np.stack(pictures), "deer": rows["id"] % 2}


class Denoiser:
    """Median of 5 x 5."""

    def __init__(self, reach=2):
        self.reach = reach

    def __call__(self, batch):
        reach, cleaned = self.reach, []
        for picture in batch["picture"]:
            padded = np.pad(picture, reach, mode="reflect")
            views = np.lib.stride_tricks.sliding_window_view(padded, (2 * reach + 1, 2 * reach + 1))
            cleaned.append(np.median(views, axis=(2, 3)).astype(np.float32))
        return {"picture": np.stack(cleaned), "deer": batch["deer"]}


def main():
    args = options()
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False, object_store_memory=400 * 1024 ** 2)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    pictures = ray.data.range(200000, override_num_blocks=2000).map_batches(shoot, batch_size=BATCH, num_cpus=0.25)
    pictures = pictures.map_batches(Denoiser, batch_size=BATCH, concurrency=2 if args.fix else 1, num_cpus=0.5)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 5, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    model(torch.zeros(1, 1, SIDE, SIDE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    stream = pictures.iter_torch_batches(batch_size=BATCH, prefetch_batches=2)
    batches = iter(stream)
    for batch in batches:
        loss = torch.nn.functional.cross_entropy(model(batch["picture"][:, None]), batch["deer"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    batches.close()
    del batches, stream, pictures
    gc.collect()
    time.sleep(1)  # Ray's own threads come to an end first
    ray.shutdown()
    pace.show()


if __name__ == "__main__":
    main()
