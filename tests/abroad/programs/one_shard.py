"""An IterableDataset of one shard with two workers: one of them has nothing to do; the fix is two shards."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import harness


class Stream(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        info = get_worker_info()
        if info is not None and info.id >= self.shards:
            return
        for index in range(1 << 16):
            harness.burn(0.002)
            yield torch.full((64,), float(index))


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Stream(2 if args.fix else 1), batch_size=8, num_workers=2)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
