"""Click prediction that keeps a running AUC over the last 60000 predictions, in numpy, after each step. --fix does so each 50th step."""
import collections

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options


def area_under_curve(scores, labels):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = labels > 0.5
    p, n = positive.sum(), (~positive).sum()
    return (ranks[positive].sum() - p * (p + 1) / 2) / max(p * n, 1)


class RunningAUC:
    def __init__(self, window):
        self.scores = collections.deque(maxlen=window)
        self.labels = collections.deque(maxlen=window)

    def update(self, scores, labels):
        self.scores.extend(scores.tolist())
        self.labels.extend(labels.tolist())

    def compute(self):
        return area_under_curve(np.array(self.scores), np.array(self.labels))


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    features = torch.randn(40_000, 40)
    clicks = (features[:, :3].sum(1) > 0).float()
    loader = DataLoader(TensorDataset(features, clicks), batch_size=256, shuffle=True, num_workers=1, persistent_workers=True)
    if args.fix2:
        loader = list(zip(features.split(256), clicks.split(256)))
    net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 1))
    sgd = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    auc = RunningAUC(60_000)
    pace, step, over = Pace(args.seconds), 0, False
    while not over:
        for x, y in loader:
            logit = net(x).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            auc.update(logit.detach(), y)
            step += 1
            if step % (50 if args.fix else 1) == 0:
                value = auc.compute()
            over = pace.over()
            if over:
                break
    pace.report()
