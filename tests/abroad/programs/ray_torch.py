"""Ray Data reads reviews of its own blocks, and iter_torch_batches hashes their words and word pairs in its collate_fn, beside the trainer.
--fix hashes them once, in a map_batches before the training, and keeps the result."""
import logging
import os
import random
import zlib

os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import numpy as np
import ray
import torch

from meter import Meter, arguments


def hashed(texts):
    bags = np.zeros((len(texts), 1024), np.float32)
    for row, text in enumerate(texts):
        words = str(text).lower().split(" ")
        for first, second, third in zip(words, words[1:], words[2:]):
            for gram in (first, first + " " + second, first + " " + second + " " + third):
                bags[row, zlib.crc32(gram.encode()) % 1024] += 1
    return bags


def hash_batch(rows):
    return {"bag": hashed(rows["text"]), "stars": rows["stars"]}


def collate(rows):
    return {"bag": torch.from_numpy(hashed(rows["text"])), "stars": torch.as_tensor(rows["stars"])}


def main():
    args = arguments()
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    draw = random.Random(0)
    words = ["word%d" % i for i in range(5000)]
    texts = [" ".join(draw.choices(words, k=300)) for _ in range(1000)]
    reviews = [{"text": texts[index % 1000], "stars": draw.randrange(5)} for index in range(12800)]
    rows = ray.data.from_items(reviews, override_num_blocks=25).materialize()
    if args.fix:
        rows = rows.map_batches(hash_batch, batch_size=256).materialize()
    model = torch.nn.Linear(1024, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    meter = Meter(args.seconds)
    over = False
    while not over:
        if args.fix:
            batches = rows.iter_torch_batches(batch_size=64)
        else:
            batches = rows.iter_torch_batches(batch_size=64, collate_fn=collate)
        for batch in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch["bag"]), batch["stars"]).backward()
            optimizer.step()
            over = meter.tick()
            if over:
                break
    meter.show()


if __name__ == "__main__":
    main()
