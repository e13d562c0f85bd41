"""A small BERT reads briefs to a court and says which side wrote them; the tokens are ready in a memory-mapped file.

--fix: num_workers 2 -> 6, prefetch_factor 2 -> 8."""
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification

from pace import Pace, options

LENGTH, VOCABULARY = 96, 2000


class Briefs(Dataset):
    def __init__(self, path):
        self.tokens = np.memmap(path, np.uint16, "r").reshape(-1, LENGTH)

    def __len__(self):
        return 100000

    def __getitem__(self, number):
        tokens = self.tokens[number % len(self.tokens)].astype(np.int64)
        return {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "labels": int(tokens[5]) % 2}


def main():
    args = options()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "briefs.bin")
        np.random.default_rng(1).integers(5, VOCABULARY, (3000, LENGTH), dtype=np.uint16).tofile(path)
        loader = DataLoader(Briefs(path), batch_size=8, shuffle=True, num_workers=6 if args.fix else 2, prefetch_factor=8 if args.fix else 2)
        config = BertConfig(vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512, max_position_embeddings=LENGTH, num_labels=2)
        model = BertForSequenceClassification(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
        pace = Pace(args.seconds)
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if pace.done():
                break
        pace.show()


if __name__ == "__main__":
    main()
