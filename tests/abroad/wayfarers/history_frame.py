"""Trains on tabular rows and keeps a history of all steps, resumed from an earlier run, as a pandas frame; a smoothed loss decides on stopping early.
--fix: the new rows in a list, the smoothed loss as a running number."""
import numpy as np
import pandas as pd
import torch

from pace import Pace, options

EARLIER, SPAN = 400_000, 500
COLUMNS = ["step", "loss", "grad_norm", "lr", "accuracy", "rows_seen", "weight_norm", "margin"]


class Rows(torch.utils.data.Dataset):
    """An item is a whole batch."""

    def __init__(self):
        noise = torch.Generator().manual_seed(0)
        self.rows = torch.randn(20_000, 32, generator=noise)
        self.labels = (self.rows[:, :4].sum(1) > 0).float()

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        at = index * 128 % (len(self.rows) - 128)
        return self.rows[at:at + 128].clone(), self.labels[at:at + 128].clone()


class FrameHistory:
    def __init__(self, earlier):
        self.frame = pd.DataFrame(earlier, columns=COLUMNS)

    def note(self, values):
        self.frame = pd.concat([self.frame, pd.DataFrame([values])], ignore_index=True)
        return self.frame["loss"].ewm(span=SPAN).mean().iloc[-1]


class ListHistory:
    def __init__(self, earlier):
        self.rows, self.smooth = [earlier], earlier[-SPAN:, 1].mean()

    def note(self, values):
        self.rows.append(values)
        self.smooth += (values["loss"] - self.smooth) * 2 / (SPAN + 1)
        return self.smooth


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    earlier = np.random.default_rng(0).random((EARLIER, len(COLUMNS)))
    history = ListHistory(earlier) if args.fix else FrameHistory(earlier)
    loader = torch.utils.data.DataLoader(Rows(), batch_size=None, num_workers=1, prefetch_factor=8)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    pace = Pace(args.seconds)
    for step, (rows, labels) in enumerate(loader, EARLIER):
        logits = model(rows)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        smooth = history.note({"step": step, "loss": loss.item(), "grad_norm": norm.item(), "lr": 0.05,
                               "accuracy": ((logits > 0) == (labels > 0.5)).float().mean().item(), "rows_seen": step * 128.0,
                               "weight_norm": model[0].weight.norm().item(), "margin": logits.abs().mean().item()})
        if pace.done() or smooth < 1e-6:
            break
    pace.show()


if __name__ == "__main__":
    main()
