"""Binary classification that keeps an eye on the AUC of the last predictions."""
import collections

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options


class RunningAUC:
    """Area under the curve, accuracy and calibration over a window of predictions."""

    def __init__(self, window, every):
        self.scores = collections.deque(maxlen=window)
        self.labels = collections.deque(maxlen=window)
        self.every, self.calls = every, 0
        self.value = {}

    def update(self, scores, labels):
        self.scores.extend(scores.tolist())
        self.labels.extend(labels.tolist())
        self.calls += 1
        if self.calls % self.every == 0:
            self.value = self.compute()

    def compute(self):
        scores, labels = np.array(self.scores), np.array(self.labels)
        order = np.argsort(scores, kind="stable")
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1, len(order) + 1)
        positive = labels > 0.5
        n = positive.sum()
        m = len(labels) - n
        auc = (ranks[positive].sum() - n * (n + 1) / 2) / max(1, n * m)
        bins = np.digitize(scores, np.linspace(0, 1, 21))
        gap = sum(abs(scores[bins == b].mean() - labels[bins == b].mean()) for b in np.unique(bins))
        return {"auc": float(auc), "gap": float(gap), "accuracy": float(((scores > 0.5) == positive).mean())}


def main():
    args = options()
    torch.set_num_threads(1)
    x = torch.randn(20_000, 32)
    y = (x[:, 0] + 0.5 * torch.randn(20_000) > 0).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=not args.fix2, num_workers=1, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    metric = RunningAUC(window=50_000, every=25 if args.fix else 1)
    for _ in range(800):      # as after a while of training
        metric.scores.extend(np.random.rand(64).tolist())
        metric.labels.extend((np.random.rand(64) > 0.5).astype(float).tolist())
    pace = Pace(args.seconds)
    done = False
    while not done:
        for features, labels in loader:
            logits = model(features).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            metric.update(torch.sigmoid(logits.detach()), labels)
            done = pace.tick()
            if done:
                break
    pace.show()


main()
