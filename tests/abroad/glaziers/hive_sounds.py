"""Hears from a beehive's sound whether the queen is there. The mel spectra were stored with Hugging Face
datasets; they are read as a stream of batches."""
import os
import shutil
import tempfile

os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import numpy as np
import torch
from torch import nn

from pace import Pace, options

MELS, FRAMES, CLIPS, BATCH = 40, 400, 240, 24


def record(clips):
    random = np.random.default_rng(9)
    for i in range(clips):
        yield {"hive": f"H{i % 12}", "mel": random.standard_normal(MELS * FRAMES, dtype=np.float32), "queen": i % 2}


def clips_on_disk(folder):
    features = datasets.Features({"hive": datasets.Value("string"), "queen": datasets.Value("int64"),
                                  "mel": datasets.List(datasets.Value("float32"))})
    made = datasets.Dataset.from_generator(record, features=features, gen_kwargs={"clips": CLIPS}, cache_dir=folder)
    made.save_to_disk(os.path.join(folder, "clips"))
    return datasets.load_from_disk(os.path.join(folder, "clips"))


def levelled(batch):
    """Each clip with mean 0 and deviation 1."""
    mel = np.asarray(batch["mel"], np.float32).reshape(-1, MELS, FRAMES)
    mean, deviation = mel.mean((1, 2), keepdims=True), mel.std((1, 2), keepdims=True)
    return {"mel": (mel - mean) / deviation, "queen": np.asarray(batch["queen"])}


class Queen(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(MELS, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, mel):
        return self.out(self.rnn(mel[:, :, ::20].transpose(1, 2))[1][0]).squeeze(1)


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="hive")
    try:
        clips = clips_on_disk(folder).remove_columns("hive")
        stream = clips.to_iterable_dataset(num_shards=4)
        if args.fix:
            stream = stream.with_format("numpy")
        stream = stream.map(levelled, batched=True, batch_size=BATCH)
        model = Queen()
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for batch in stream.iter(batch_size=BATCH):
                mel = torch.as_tensor(np.stack(batch["mel"]))
                queen = torch.as_tensor(np.asarray(batch["queen"])).float()
                loss = nn.functional.binary_cross_entropy_with_logits(model(mel), queen)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
