"""Items come from a server that answers after 20 ms; two workers, the fix is eight."""
import urllib.request

import torch
from torch.utils.data import DataLoader, Dataset

import harness
import store


class Items(Dataset):
    def __init__(self, url):
        self.url = url

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        with urllib.request.urlopen(self.url) as answer:
            return len(answer.read()) + index


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    loader = DataLoader(Items(store.start()), batch_size=4, num_workers=8 if args.fix else 2)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.002), args.seconds)
