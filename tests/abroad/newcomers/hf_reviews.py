"""Reviews in a datasets table, tokenised on access by a transform; one worker. --fix: two."""
import os
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import random

import datasets
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import DataLoader

from pace import Pace, options


def reviews(count):
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(1500)]
    return [" ".join(rng.choices(words, k=700)) for _ in range(count)]


def build():
    texts = reviews(2400)
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts[:200], trainers.BpeTrainer(vocab_size=700, special_tokens=["[UNK]", "[PAD]"], show_progress=False))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding(length=256)
    table = datasets.Dataset.from_dict({"text": texts, "label": [i % 2 for i in range(len(texts))]})

    def encode(batch):
        return {"ids": [torch.tensor(tokenizer.encode(text).ids) for text in batch["text"]], "label": batch["label"]}

    return table.with_transform(encode)


def epochs(loader):
    while True:
        yield from loader


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(build(), batch_size=8, shuffle=True, num_workers=2 if args.fix else 1, persistent_workers=True)
    embed, head = torch.nn.EmbeddingBag(700, 16), torch.nn.Linear(16, 2)
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], 0.1)
    pace = Pace(args.seconds)
    for batch in epochs(loader):
        loss = torch.nn.functional.cross_entropy(head(embed(batch["ids"])), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            break
    pace.report()
