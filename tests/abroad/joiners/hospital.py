"""Recognises atrial fibrillation in a hospital's ECGs, kept as a Hugging Face dataset."""
import os
import shutil
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

import numpy as np
import torch
from datasets import Dataset, Features, Sequence, Value, load_from_disk
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

LEADS, SAMPLES = 4, 1500


def ward_round(patients=600):
    rng = np.random.default_rng(11)
    seconds = np.arange(SAMPLES) / 250
    for patient in range(patients):
        rate = 1.1 if patient % 2 else 1.6 + 0.3 * np.sin(seconds)
        beat = np.sin(2 * np.pi * rate * seconds) ** 15
        leads = beat + rng.normal(0, .1, (LEADS, SAMPLES))
        yield {"patient": patient, "ecg": leads.ravel().astype(np.float32), "fibrillation": patient % 2}


def admit(folder):
    columns = Features({"patient": Value("int32"), "ecg": Sequence(Value("float32")), "fibrillation": Value("int64")})
    rows = list(ward_round())
    Dataset.from_dict({name: [row[name] for row in rows] for name in columns}, features=columns).save_to_disk(folder)
    return load_from_disk(folder)


def batch_of(rows):
    ecg = torch.stack([torch.as_tensor(row["ecg"]) for row in rows])
    return ecg.view(-1, LEADS, SAMPLES), torch.tensor([int(row["fibrillation"]) for row in rows])


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(LEADS, 16, 15, stride=6), nn.ReLU(),
                                  nn.Conv1d(16, 32, 9, stride=4), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten())
        self.head = nn.Linear(32, 2)

    def forward(self, ecg):
        return self.head(self.body(ecg))


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="hospital")
    try:
        records = admit(folder)
        if opts.fix:
            records = records.with_format("torch")
        loader = DataLoader(records, batch_size=32, shuffle=True, collate_fn=batch_of)
        net = RhythmNet()
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        pace, over = Pace(opts.seconds), False
        while not over:
            for ecg, label in loader:
                loss = nn.functional.cross_entropy(net(ecg), label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
