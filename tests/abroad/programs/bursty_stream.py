"""A stream of shards: quick once a shard is open, but opening one takes 200 ms. On average the stream is faster than the
trainer; the two batches fetched ahead do not last over an opening. --fix fetches 40 ahead."""
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

import meter


class Shards(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(3)
        while True:
            time.sleep(0.2)  # the object store opens the next shard
            for _ in range(40 * 16):
                yield torch.rand(256, generator=generator)


def main():
    options = meter.arguments()
    torch.set_num_threads(1)
    loader = DataLoader(Shards(), batch_size=16, num_workers=1, prefetch_factor=40 if options.fix else 2)
    model = torch.nn.Linear(256, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    clock = meter.Meter(options.seconds)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        time.sleep(0.0095)  # the accelerator's share of the step
        if clock.tick():
            break
    clock.show()


if __name__ == "__main__":
    main()
