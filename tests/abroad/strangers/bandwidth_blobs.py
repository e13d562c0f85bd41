"""Blobs of a megabyte over a thin line."""
import urllib.request

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import stores
from pace import options, timed


class Blobs(IterableDataset):
    def __init__(self, url):
        self.url = url

    def __iter__(self):
        info = get_worker_info()
        number = info.id
        while True:
            with urllib.request.urlopen(f"{self.url}/blob-{number:06d}") as answer:
                yield np.frombuffer(answer.read(), np.int16).astype(np.float32)
            number += info.num_workers


def collate(blobs):
    return torch.from_numpy(np.stack(blobs))


if __name__ == "__main__":
    args = options()
    port = stores.start("http_store.py", "--size", 1 << 18, "--bandwidth", 60e6 if args.fix else 8e6)
    loader = DataLoader(Blobs(f"http://127.0.0.1:{port}"), batch_size=2, num_workers=3, collate_fn=collate)
    totals = torch.zeros(1 << 17)
    for blobs in timed(loader, args.seconds):
        totals += blobs.mean(0)
        torch.fft.rfft(blobs).abs().amax(1)
