"""transformers' Trainer with a small masked language model; the collator masks whole words, in plain Python.
--fix: masks with numpy, all rows at once."""
import random
import tempfile

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from pace import Pace, options

PIECES, LENGTH, MASK = 3000, 320, 3


class Passages(torch.utils.data.Dataset):
    def __init__(self):
        chance = random.Random(0)
        self.rows = [[chance.randrange(4, PIECES) for _ in range(chance.randrange(200, LENGTH))] for _ in range(2000)]

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return self.rows[index % 2000]


def mask_words(rows):
    """Pieces with an odd number go on with the word before."""
    inputs, labels = [], []
    for pieces in rows:
        words = []
        for place, piece in enumerate(pieces):
            if piece % 2 and words:
                words[-1].append(place)
            else:
                words.append([place])
        random.shuffle(words)
        masked, wanted, budget = list(pieces), [-100] * len(pieces), max(1, len(pieces) * 15 // 100)
        for word in words:
            if len(word) > budget:
                continue
            budget -= len(word)
            for place in word:
                wanted[place] = pieces[place]
                draw = random.random()
                masked[place] = MASK if draw < 0.8 else random.randrange(4, PIECES) if draw < 0.9 else pieces[place]
        spare = LENGTH - len(pieces)
        inputs.append(masked + [0] * spare)
        labels.append(wanted + [-100] * spare)
    return {"inputs": torch.tensor(inputs), "labels": torch.tensor(labels)}


def mask_at_once(rows):
    pieces = np.zeros((len(rows), LENGTH), np.int64)
    for row, into in zip(rows, pieces):
        into[:len(row)] = row
    begins = (pieces % 2 == 0) & (pieces > 0)
    words = begins.cumsum(1)
    chosen = (np.random.rand(len(rows), LENGTH + 1)[np.arange(len(rows))[:, None], words] < 0.15) & (pieces > 0)
    draw = np.random.rand(*pieces.shape)
    fresh = np.where(draw < 0.8, MASK, np.where(draw < 0.9, np.random.randint(4, PIECES, pieces.shape), pieces))
    return {"inputs": torch.from_numpy(np.where(chosen, fresh, pieces)), "labels": torch.from_numpy(np.where(chosen, pieces, -100))}


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(PIECES, 8), torch.nn.Linear(8, 64)

    def forward(self, inputs, labels):
        context = self.embed(inputs).mean(1)
        wanted = labels.amax(1).clamp(min=0) % 64
        return {"loss": torch.nn.functional.cross_entropy(self.head(context), wanted)}


class Clock(TrainerCallback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_step_end(self, args, state, control, **rest):
        control.should_training_stop = self.pace.done()


def main():
    args = options()
    torch.set_num_threads(1)
    clock = Clock(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(folder, max_steps=1_000_000, per_device_train_batch_size=256, use_cpu=True, report_to=[], disable_tqdm=True,
                                     logging_strategy="no", save_strategy="no", remove_unused_columns=False, dataloader_pin_memory=False)
        Trainer(Masked(), settings, data_collator=mask_at_once if args.fix else mask_words, train_dataset=Passages(), callbacks=[clock]).train()
    clock.pace.show()


if __name__ == "__main__":
    main()
