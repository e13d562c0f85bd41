"""A critic with gradient penalty, twice differentiated, five critic updates each batch. --fix: one update."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Rings(Dataset):
    def __init__(self, cheap=False):
        self.cheap = torch.zeros(128) if cheap else None

    def __len__(self):
        return 50_000_000

    def __getitem__(self, index):
        if self.cheap is not None:
            return self.cheap
        angle = torch.rand(64) * 6.283
        return torch.cat([angle.cos(), angle.sin()]) + 0.02 * torch.randn(128)


def endless(loader):
    while True:
        yield from loader


class Gan:
    def __init__(self, critic_updates):
        self.critic_updates = critic_updates
        self.generator = nn.Sequential(nn.Linear(16, 192), nn.ReLU(), nn.Linear(192, 128))
        self.critic = nn.Sequential(nn.Linear(128, 192), nn.LeakyReLU(0.2), nn.Linear(192, 192), nn.LeakyReLU(0.2), nn.Linear(192, 1))
        self.g_opt = torch.optim.Adam(self.generator.parameters(), 1e-4, betas=(0.5, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), 1e-4, betas=(0.5, 0.9))

    def penalty(self, real, fake):
        mix = torch.rand(len(real), 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        grad, = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)
        return ((grad.norm(dim=1) - 1) ** 2).mean()

    def update(self, real):
        for _ in range(self.critic_updates):
            fake = self.generator(torch.randn(len(real), 16)).detach()
            loss = self.critic(fake).mean() - self.critic(real).mean() + 10 * self.penalty(real, fake)
            self.c_opt.zero_grad()
            loss.backward()
            self.c_opt.step()
        loss = -self.critic(self.generator(torch.randn(len(real), 16))).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    gan = Gan(1 if args.fix else 5)
    pace = Pace(args.seconds)
    for real in endless(DataLoader(Rings(args.fix2), batch_size=32, num_workers=1, drop_last=True)):
        gan.update(real)
        if pace.over():
            break
    pace.report()
