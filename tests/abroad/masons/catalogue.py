"""Subject headings for a library's catalogue: records with abstracts in gzipped JSON lines, streamed and tokenized."""
import gzip
import json
import os
import shutil
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

LENGTH, SUBJECTS, PIECES = 192, 30, 3000


def write_records(path, count=250):
    rng = np.random.default_rng(4)
    syllables = np.array([a + b + c for a in "bdfgklmnprst" for b in "aeiouéö" for c in ("", "n", "r", "st")])
    with gzip.open(path, "wt", compresslevel=1) as file:
        for number in range(count):
            words = ["".join(rng.choice(syllables, rng.integers(2, 5))) for _ in range(450)]
            json.dump({"id": number, "subject": int(rng.integers(SUBJECTS)), "abstract": " ".join(words) + "."}, file)
            file.write("\n")


def records(path):
    with gzip.open(path, "rt") as file:
        for line in file:
            yield json.loads(line)


def train_tokenizer(path):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", cache_capacity=0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    sample = [record["abstract"] for _, record in zip(range(60), records(path))]
    tokenizer.train_from_iterator(sample, trainers.BpeTrainer(vocab_size=PIECES, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    return tokenizer


class CatalogueStream(IterableDataset):
    def __init__(self, path, tokenizer):
        self.path, self.tokenizer = path, tokenizer

    def __iter__(self):
        worker = get_worker_info()
        while True:
            for number, record in enumerate(records(self.path)):
                if number % worker.num_workers == worker.id:
                    yield torch.tensor(self.tokenizer.encode(record["abstract"]).ids), record["subject"]


class EncodedStream(IterableDataset):
    """The same, from arrays that were tokenized once."""

    def __init__(self, folder, path, tokenizer):
        rows = list(records(path))
        np.save(os.path.join(folder, "ids.npy"), np.array([tokenizer.encode(row["abstract"]).ids for row in rows], np.int64))
        self.ids, self.subjects = os.path.join(folder, "ids.npy"), [row["subject"] for row in rows]

    def __iter__(self):
        worker, ids = get_worker_info(), np.load(self.ids, mmap_mode="r")
        while True:
            for number in range(worker.id, len(ids), worker.num_workers):
                yield torch.tensor(ids[number]), self.subjects[number]


def main():
    asked = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="catalogue")
    try:
        path = os.path.join(folder, "records.jsonl.gz")
        write_records(path)
        tokenizer = train_tokenizer(path)
        stream = EncodedStream(folder, path, tokenizer) if asked.fix else CatalogueStream(path, tokenizer)
        loader = DataLoader(stream, batch_size=32, num_workers=2)
        model = nn.Sequential(nn.EmbeddingBag(PIECES, 64, padding_idx=0), nn.ReLU(), nn.Linear(64, SUBJECTS))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace = Pace(asked.seconds)
        for ids, subject in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(ids), subject).backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
