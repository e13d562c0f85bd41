"""torchmetrics: findings in chest scans (several per scan), with the average precision shown while it trains."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric
from torchmetrics.classification import MultilabelAveragePrecision

from pace import Pace, options

FINDINGS, SIDE, BATCH = 14, 24, 64


class Scans(Dataset):
    def __init__(self, count=6400):
        generator = torch.Generator().manual_seed(41)
        self.present = (torch.rand(count, FINDINGS, generator=generator) < 0.2).long()
        signs = torch.randn(FINDINGS, SIDE * SIDE, generator=generator)
        noise = torch.randn(count, SIDE * SIDE, generator=generator)
        self.images = (self.present.float() @ signs + noise).view(count, 1, SIDE, SIDE)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.present[i]


class FindingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(8 * 11 * 11, FINDINGS)

    def forward(self, images):
        return self.head(self.features(images))


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(Scans(), batch_size=BATCH, shuffle=True)
    model = FindingNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    precision = MultilabelAveragePrecision(num_labels=FINDINGS)
    mean_loss = MeanMetric()
    pace, over, epoch = Pace(args.seconds), False, 0
    while not over:
        for images, present in loader:
            logits = model(images)
            loss = criterion(logits, present.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean_loss.update(loss.detach())
            precision.update(logits.detach().sigmoid(), present)
            if not args.fix:
                shown = precision.compute()
            over = pace.done()
            if over:
                break
        shown = precision.compute()
        epoch += 1
        print(f"epoch {epoch}: loss {mean_loss.compute():.3f}, average precision {shown:.3f}")
        precision.reset()
        mean_loss.reset()
    pace.show()


if __name__ == "__main__":
    main()
