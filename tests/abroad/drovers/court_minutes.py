"""Minutes of a district court: a streamed Hugging Face dataset of JSON lines, a classifier of the kind of hearing."""
import json
import os
import random
import re
import shutil
import tempfile
import zlib

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import torch
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

BUCKETS = 4096
STOP = {"the", "of", "and", "to", "in", "a", "was", "by"}
WORDS = ("the court of and to in a was by plaintiff defendant counsel witness hearing adjourned exhibit motion granted "
         "denied costs bail surety oath clerk judge appeal sworn session lease debt boundary fence estate").split()


def write_minutes(folder, count=2500):
    rng = random.Random(9)
    path = os.path.join(folder, "minutes.jsonl")
    with open(path, "w") as out:
        for n in range(count):
            text = " ".join(rng.choice(WORDS) for _ in range(400))
            out.write(json.dumps({"text": text.capitalize() + f", {n}.", "kind": n % 5}) + "\n")
    return path


def hash_words(row):
    """Counts of words and of pairs, hashed into buckets."""
    words = [w for w in re.findall(r"[a-z]+", row["text"].lower()) if w not in STOP]
    counts = {}
    for pair in zip(words, words[1:]):
        for term in (pair[0], " ".join(pair)):
            bucket = zlib.crc32(term.encode()) % BUCKETS
            counts[bucket] = counts.get(bucket, 0) + 1
    vector = torch.zeros(BUCKETS)
    vector[list(counts)] = torch.tensor(list(counts.values()), dtype=torch.float32)
    return {"vector": vector.log1p().numpy(), "kind": row["kind"]}


def stack(rows):
    return (torch.stack([torch.as_tensor(row["vector"]) for row in rows]),
            torch.tensor([row["kind"] for row in rows]))


def main():
    args = options()
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    folder = tempfile.mkdtemp(prefix="court")
    try:
        minutes = datasets.load_dataset("json", data_files=write_minutes(folder), split="train", streaming=True,
                                        cache_dir=folder)
        minutes = minutes.map(hash_words, remove_columns=["text"]).shuffle(seed=3, buffer_size=64)
        loader = DataLoader(minutes, batch_size=32, num_workers=2 if args.fix else 1, collate_fn=stack,
                            persistent_workers=True)
        net = nn.Sequential(nn.Linear(BUCKETS, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 5))
        optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for vectors, kinds in loader:
                loss = nn.functional.cross_entropy(net(vectors), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
