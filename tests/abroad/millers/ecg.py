"""HF datasets: heartbeats with a rhythm disorder, from twelve-lead ECG strips kept as an Arrow dataset."""
import tempfile

import datasets
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from pace import Pace, options

LEADS, SAMPLES, RHYTHMS = 12, 500, 4
datasets.disable_progress_bars()


def record_strips(count):
    rng = np.random.default_rng(9)
    times = np.linspace(0, 5, SAMPLES, dtype=np.float32)
    for i in range(count):
        rhythm = i % RHYTHMS
        beat = np.sin(2 * np.pi * (1 + 0.4 * rhythm) * times)
        strip = beat * rng.normal(1, 0.2, size=(LEADS, 1)) + rng.normal(0, 0.3, size=(LEADS, SAMPLES))
        yield {"patient": i // 4, "strip": strip.astype(np.float32), "rhythm": rhythm}


def save_strips(folder, count=960):
    features = datasets.Features({"patient": datasets.Value("int32"),
                                  "strip": datasets.Array2D((LEADS, SAMPLES), "float32"),
                                  "rhythm": datasets.Value("int64")})
    columns = {key: [] for key in features}
    for record in record_strips(count):
        for key, value in record.items():
            columns[key].append(value)
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(folder)


def to_batch(records):
    strips = torch.stack([torch.as_tensor(record["strip"], dtype=torch.float32) for record in records])
    return strips, torch.tensor([int(record["rhythm"]) for record in records])


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(LEADS, 16, 9, stride=4), nn.ReLU(), nn.Conv1d(16, 16, 9, stride=4),
                                    nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(128, RHYTHMS))

    def forward(self, strips):
        return self.layers(strips)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="ecg-") as folder:
        save_strips(folder)
        strips = datasets.load_from_disk(folder).remove_columns("patient")
        if args.fix:
            strips = strips.with_format("torch")
        loader = DataLoader(strips, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True,
                            collate_fn=to_batch)
        model = RhythmNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        pace, over = Pace(args.seconds), False
        while not over:
            for batch, rhythm in loader:
                loss = nn.functional.cross_entropy(model(batch), rhythm)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        print(f"loss {loss.item():.3f}")
        pace.show()
        del loader


if __name__ == "__main__":
    main()
