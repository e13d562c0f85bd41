"""Hugging Face rows decoded by set_transform in the loader's workers; the fix is a transform that computes a tenth."""
import datasets
import numpy
import torch
from torch.utils.data import DataLoader

import harness


class Decode:
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, rows):
        for _ in rows["x"]:
            harness.burn(self.seconds)
        return {"x": [torch.tensor([float(x)]) for x in rows["x"]]}


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    rows = datasets.Dataset.from_dict({"x": numpy.arange(20000)})
    rows.set_transform(Decode(0.0004 if args.fix else 0.004))
    loader = DataLoader(rows, batch_size=8, num_workers=1)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
