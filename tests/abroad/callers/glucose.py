"""Glucose an hour ahead from a day of sensor readings: a GRU under Accelerate, error tracked with torchmetrics."""
import torch
import torchmetrics
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

READINGS = 144
AHEAD = 6


class SensorDays(Dataset):
    """Windows over the readings of some patients, all in memory."""

    def __init__(self, patients=20, readings=5000):
        generator = torch.Generator().manual_seed(7)
        steps = torch.randn(patients, readings, 3, generator=generator) * 0.05
        self.series = steps.cumsum(dim=1)
        self.each = readings - READINGS - AHEAD

    def __len__(self):
        return self.series.shape[0] * self.each

    def __getitem__(self, index):
        patient, start = divmod(index, self.each)
        end = start + READINGS
        return self.series[patient, start:end], self.series[patient, end + AHEAD - 1, :1]


class GlucoseModel(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.gru = nn.GRU(3, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, readings):
        states, _ = self.gru(readings)
        return self.head(states[:, -1])


def train(args):
    torch.set_num_threads(1)  # other jobs share the machine
    accelerator = Accelerator(cpu=True)
    workers = {"num_workers": 2, "prefetch_factor": 4} if args.fix else {"num_workers": 0}
    loader = DataLoader(SensorDays(), batch_size=32, shuffle=True, **workers)
    model = GlucoseModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    error = torchmetrics.MeanAbsoluteError()
    pace = Pace(args.seconds)
    over = False
    while not over:
        for readings, target in loader:
            optimizer.zero_grad()
            forecast = model(readings)
            loss = nn.functional.smooth_l1_loss(forecast, target)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            error.update(forecast.detach(), target)
            over = pace.done()
            if over:
                break
    accelerator.print(f"mean absolute error {error.compute():.4f}")
    pace.show()


if __name__ == "__main__":
    train(options())
