"""Accelerate trains a little U-Net that removes noise; its pictures lie in memory.
--fix is what a colleague advised: one more loader worker."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Pictures(Dataset):
    def __init__(self, count=512, side=48):
        self.pictures = torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        return self.pictures[index % len(self.pictures)]


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.SiLU(), nn.Conv2d(cout, cout, 3, padding=1), nn.SiLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = block(3, 16), block(16, 32), block(32, 32)
        self.up2, self.up1, self.last = block(64, 16), block(32, 16), nn.Conv2d(16, 3, 1)
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.grow(self.middle(self.pool(b)))
        d = self.grow(self.up2(torch.cat([b, c], 1)))
        return self.last(self.up1(torch.cat([a, d], 1)))


def main():
    args = options()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(), batch_size=8, shuffle=True, num_workers=2 if args.fix else 1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    pace = Pace(args.seconds)
    for clean in loader:
        noise = torch.randn_like(clean)
        loss = (model(clean + 0.3 * noise) - noise).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
