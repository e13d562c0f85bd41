"""A trap. Trains on a stream of `datasets` with one file: its map cleans and counts words, in plain Python, in the loader's worker.
--fix is what people advise, num_workers 1 -> 4. It brings nothing: the file is the one shard, so one worker has all the work."""
import json
import os
import random
import re
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import torch

from pace import Pace, options

LINES, BUCKETS = 2000, 512
WORD = re.compile(r"[a-z]+|\d+")


def write(path):
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(3000)]
    with open(path, "w") as out:
        for _ in range(LINES):
            out.write(json.dumps({"text": " ".join(draw.choices(words, k=120)).title() + "!", "label": draw.randint(0, 1)}) + "\n")


def lines(files):
    for path in files:
        while True:  # the stream goes on
            with open(path) as text:
                for line in text:
                    yield json.loads(line)


def clean(example):
    counts = [0] * BUCKETS
    for word in WORD.findall(example["text"].lower()):
        place = 0
        for letter in word:
            place = (place * 31 + ord(letter)) % 65521
        counts[place % BUCKETS] += 1
    return {"counts": counts}


def collate(examples):
    return torch.tensor([example["counts"] for example in examples], dtype=torch.float32), torch.tensor([float(example["label"]) for example in examples])


def main():
    args = options()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"] = folder
        import datasets

        path = os.path.join(folder, "reviews.jsonl")
        write(path)
        stream = datasets.IterableDataset.from_generator(lines, gen_kwargs={"files": [path]}).map(clean, remove_columns=["text"])
        loader = torch.utils.data.DataLoader(stream, batch_size=32, num_workers=4 if args.fix else 1, collate_fn=collate)
        model = torch.nn.Sequential(torch.nn.Linear(BUCKETS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters())
        pace = Pace(args.seconds)
        for counts, labels in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(counts)[:, 0], labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
