"""Fine-tunes a classifier of cooking recipes: a `datasets` dataset whose transform tokenizes on the fly, in a DataLoader with its defaults.

--fix: num_workers 0 -> 2."""
import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

CUISINES, LENGTH = 12, 256


def write_recipes(count=1500):
    rng = random.Random(11)
    syllables = ["ba", "ri", "to", "mel", "san", "ko", "pe", "lu", "ghi", "na", "cre", "vo", "sti", "dou", "qua"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(6000)]
    recipes, labels = [], []
    for number in range(count):
        cuisine = number % CUISINES
        pantry = words[cuisine * 300:cuisine * 300 + 2500]
        recipes.append(" ".join(rng.choice(pantry) + rng.choice(["", "", "", ",", "."]) for _ in range(240)).capitalize())
        labels.append(cuisine)
    return recipes, labels


def train_tokenizer(recipes):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(recipes[:200], trainers.WordPieceTrainer(vocab_size=800, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    return tokenizer


class Taster(nn.Module):
    def __init__(self, vocabulary=800, width=48):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocabulary, width, mode="mean")
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, CUISINES))

    def forward(self, ids):
        return self.head(self.embed(ids))


def main():
    args = options()
    torch.set_num_threads(1)
    recipes, labels = write_recipes()
    tokenizer = train_tokenizer(recipes)

    def tokenize(rows):
        encodings = tokenizer.encode_batch(rows["text"])
        return {"ids": [torch.tensor(encoding.ids) for encoding in encodings], "label": rows["label"]}

    dataset = Dataset.from_dict({"text": recipes, "label": labels}).with_transform(tokenize)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True, num_workers=2 if args.fix else 0, persistent_workers=args.fix)
    model = Taster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    pace = Pace(args.seconds)
    over = False
    while not over:
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["ids"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
