"""Small batches as fast as they come, for what watching costs."""
import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Items(Dataset):
    def __init__(self, item_us):
        self.item_s = item_us / 1e6

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if self.item_s:
            harness.burn(self.item_s)
        return index


if __name__ == "__main__":
    args = harness.options(item_us=0.0)
    torch.set_num_threads(1)
    loader = DataLoader(Items(args.item_us), batch_size=4, num_workers=2, prefetch_factor=8, collate_fn=list)
    harness.loop(harness.forever(lambda: loader), lambda batch: None, args.seconds)
