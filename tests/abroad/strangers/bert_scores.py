"""Scores sentences with a small encoder of transformers, prepared by accelerate."""
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification

from pace import Pace, options

WORDS = "a the of model data loss train fast slow river stone green seven never always under over light".split()


class Sentences(Dataset):
    def __init__(self, same):
        self.ids = {w: 5 + i for i, w in enumerate(WORDS)}
        self.same = same

    def __len__(self):
        return 400_000

    def __getitem__(self, i):
        if self.same:
            return {"input_ids": torch.full((48,), 7)}
        words = [WORDS[(i * 31 + k * (i % 7 + 1)) % len(WORDS)] for k in range(46)]
        return {"input_ids": torch.tensor([1, *(self.ids[w] for w in words), 2])}


if __name__ == "__main__":
    args = options()
    accelerator = Accelerator(cpu=True)
    config = BertConfig(vocab_size=64, hidden_size=192, num_hidden_layers=1 if args.fix else 4, num_attention_heads=4,
                        intermediate_size=512)
    model, loader = accelerator.prepare(BertForSequenceClassification(config).eval(),
                                        DataLoader(Sentences(args.fix2), batch_size=16, num_workers=1))
    pace = Pace(args.seconds)
    scores = []
    with torch.no_grad():
        for batch in loader:
            scores.extend(model(**batch).logits[:, 1].tolist())
            if pace.tick():
                break
    pace.show()
