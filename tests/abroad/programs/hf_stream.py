"""A Hugging Face stream of one file with two workers: one of them has nothing to read; the fix is two files."""
import json
import os
import tempfile

import datasets
import torch
from torch.utils.data import DataLoader

import harness


def tokenize(row):
    harness.burn(0.002)
    return {"n": len(row["text"])}


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for shard in range(2 if args.fix else 1):
            files.append(os.path.join(folder, "%d.jsonl" % shard))
            with open(files[-1], "w") as out:
                for row in range(20000):
                    out.write(json.dumps({"text": "word " * (row % 50)}) + "\n")
        rows = datasets.load_dataset("json", data_files=files, split="train", streaming=True, cache_dir=folder)
        loader = DataLoader(rows.map(tokenize, remove_columns=["text"]), batch_size=8, num_workers=2)
        harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.001), args.seconds)
