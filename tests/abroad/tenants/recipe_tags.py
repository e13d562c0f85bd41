"""Tag recipes (vegan, baked, ...) from character n-grams, with transformers.Trainer."""
import random
import tempfile
import zlib

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from pace import Pace, options

BUCKETS, TAGS = 2048, 14
WORDS = "flour butter leek fennel miso stock simmer fold whisk bake until golden salt pepper lemon zest oats rye plum cardamom slowly then rest".split()


class Recipes(Dataset):
    def __init__(self, n=30000):
        rng = random.Random(5)
        self.texts = [" ".join(rng.choices(WORDS, k=260)) for _ in range(500)]
        self.tags = [[float(rng.random() < 0.2) for _ in range(TAGS)] for _ in range(500)]
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"text": self.texts[i % 500], "tags": self.tags[i % 500]}


class GramCollator:
    def __init__(self, sizes=(2, 3, 4)):
        self.sizes = sizes

    def __call__(self, rows):
        bags = []
        for row in rows:
            bag = [0.0] * BUCKETS
            raw = row["text"].encode()
            for size in self.sizes:
                for at in range(len(raw) - size + 1):
                    bag[zlib.crc32(raw[at:at + size]) % BUCKETS] += 1.0
            bags.append(bag)
        return {"bags": torch.tensor(bags).log1p(), "labels": torch.tensor([row["tags"] for row in rows])}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(BUCKETS, 64), nn.Tanh(), nn.Linear(64, TAGS))

    def forward(self, bags, labels=None):
        logits = self.net(bags)
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logits, labels), "logits": logits}


class Clock(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True


def main():
    o = options()
    torch.set_num_threads(1)
    pace = Pace(o.seconds)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=16, max_steps=1_000_000, learning_rate=1e-3, use_cpu=True, report_to="none", save_strategy="no",
            logging_strategy="no", disable_tqdm=True, remove_unused_columns=False, dataloader_num_workers=2 if o.fix else 0)
        Trainer(model=Tagger(), args=args, train_dataset=Recipes(), data_collator=GramCollator(), callbacks=[Clock(pace)]).train()
    pace.show()


if __name__ == "__main__":
    main()
