"""Classifies minerals by their Raman spectra: Hugging Face datasets and Trainer."""
import os
import shutil
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments, default_data_collator

from pace import Pace, options

MINERALS, POINTS = 10, 1500


def measure(folder, count=4_000):
    rng = np.random.default_rng(6)
    labels = rng.integers(0, MINERALS, count)
    shift = np.arange(POINTS)
    peak = 100 + labels[:, None] * 130
    spectrum = np.exp(-((shift - peak) / 12.0) ** 2) + 0.05 * rng.standard_normal((count, POINTS))
    features = datasets.Features({"spectrum": datasets.List(datasets.Value("float32")),
                                  "labels": datasets.Value("int64")})
    made = datasets.Dataset.from_dict({"spectrum": list(spectrum.astype(np.float32)), "labels": labels},
                                      features=features)
    path = os.path.join(folder, "spectra")
    made.save_to_disk(path)
    return datasets.load_from_disk(path)


class Mineral(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(POINTS, 32), nn.ReLU(), nn.Linear(32, MINERALS))

    def forward(self, spectrum, labels=None):
        logits = self.net(spectrum)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Rate(TrainerCallback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_step_end(self, args, state, control, **_):
        if self.pace.done():
            control.should_training_stop = True


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="spectra-")
    datasets.disable_progress_bars()
    try:
        spectra = measure(folder)
        if args.fix:
            spectra = spectra.with_format("numpy")
        rate = Rate(args.seconds)
        settings = TrainingArguments(output_dir=folder, per_device_train_batch_size=64, max_steps=1_000_000,
                                     save_strategy="no", logging_strategy="no", report_to="none", use_cpu=True,
                                     disable_tqdm=True, dataloader_num_workers=0, dataloader_pin_memory=False)
        trainer = Trainer(Mineral(), settings, train_dataset=spectra, data_collator=default_data_collator,
                          callbacks=[rate])
        trainer.train()
        rate.pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
