"""Classifies vibration records from a Hugging Face dataset (Arrow), by a DataLoader with one worker.
--fix: with_format("torch"), so the values don't become Python lists first."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import numpy as np
import torch

from pace import Pace, options

LENGTH = 2000


def collate(rows):
    return torch.stack([torch.as_tensor(row["values"]) for row in rows]).float(), torch.as_tensor([int(row["label"]) for row in rows])


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"] = folder
        import datasets

        draw = np.random.default_rng(0)
        records = datasets.Dataset.from_dict({"values": draw.random((1024, LENGTH), dtype=np.float32), "label": draw.integers(5, size=1024)})
        if args.fix:
            records = records.with_format("torch")
        model = torch.nn.Sequential(torch.nn.Linear(LENGTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        sampler = torch.utils.data.RandomSampler(records, replacement=True, num_samples=1 << 21)
        loader = torch.utils.data.DataLoader(records, batch_size=32, sampler=sampler, num_workers=1, collate_fn=collate)
        pace = Pace(args.seconds)
        for values, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(values), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
