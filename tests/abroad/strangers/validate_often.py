"""Small conv net; the validation set is looked at every few steps."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pace as P


class Blobs(Dataset):
    def __init__(self, cheap=False):
        self.cheap = cheap
        self.kept = torch.zeros(1, 24, 24)

    def __len__(self):
        return 500_000

    def __getitem__(self, k):
        if self.cheap:
            return self.kept, k % 4
        g = torch.Generator().manual_seed(k)
        image = 0.1 * torch.randn(1, 24, 24, generator=g)
        label = k % 4
        image[0, 6 * label:6 * label + 5, 4:20] += 1
        return image, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3, stride=2)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.b(self.a(x).relu()).relu().mean((2, 3)))


@torch.no_grad()
def evaluate(model, images, labels):
    model.eval()
    right = 0
    for k in range(0, len(images), 64):
        right += int((model(images[k:k + 64]).argmax(1) == labels[k:k + 64]).sum())
    model.train()
    return right / len(images)


def main(conf):
    torch.set_num_threads(1)
    model = Net()
    optimiser = torch.optim.Adam(model.parameters(), conf["lr"])
    held = [Blobs()[i] for i in range(1000)]
    images, labels = torch.stack([h[0] for h in held]), torch.tensor([h[1] for h in held])
    best = 0.0
    loader = DataLoader(Blobs(conf["cheap"]), 32, num_workers=1)
    for step, (x, y) in enumerate(P.timed(loader, conf["seconds"])):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        if step % conf["eval_every"] == 0:
            best = max(best, evaluate(model, images, labels))


if __name__ == "__main__":
    o = P.options()
    main({"lr": 1e-3, "eval_every": 200 if o.fix else 4, "seconds": o.seconds, "cheap": o.fix2})
