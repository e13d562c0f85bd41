"""Number plates' noisy readings set right with a small encoder and transformers' Trainer."""
import random
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from pace import Pace, options

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"
LENGTH = 10


class Readings(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(count):
            plate = [rng.randrange(len(LETTERS)) for _ in range(LENGTH)]
            read = [c if rng.random() > 0.15 else rng.randrange(len(LETTERS)) for c in plate]
            self.items.append({"input_ids": torch.tensor(read), "labels": torch.tensor(plate)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class PlateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 32)
        self.mix = nn.Conv1d(32, 32, 3, padding=1)
        self.head = nn.Linear(32, len(LETTERS))

    def forward(self, input_ids, labels=None):
        x = torch.relu(self.mix(self.embed(input_ids).transpose(1, 2))).transpose(1, 2)
        logits = self.head(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": logits}


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def plate_error_rate(prediction):
    guesses = prediction.predictions.argmax(-1)
    errors = 0
    for guess, label in zip(guesses, prediction.label_ids):
        errors += edit_distance("".join(LETTERS[c] for c in guess), "".join(LETTERS[c] for c in label))
    return {"cer": errors / prediction.label_ids.size}


class Clock(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="plates")
    try:
        args = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=32, per_device_eval_batch_size=256, max_steps=10**6,
            learning_rate=1e-3, eval_strategy="steps", eval_steps=250 if opts.fix else 20, save_strategy="no",
            logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
        pace = Pace(opts.seconds)
        trainer = Trainer(model=PlateNet(), args=args, train_dataset=Readings(4000, 1), eval_dataset=Readings(15000, 2),
                          compute_metrics=plate_error_rate, callbacks=[Clock(pace)])
        trainer.train()
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
