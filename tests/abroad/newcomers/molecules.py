"""Molecules joined into one big graph by the collate function, which computes the pair distances there. --fix: two workers instead of one."""
import random

import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Molecules(Dataset):
    def __init__(self, count=2000):
        torch.manual_seed(0)
        self.items = [(torch.rand(n, 3) * 6, torch.randint(9, (n,)), float(n)) for n in (random.Random(4).choices(range(26, 42), k=count))]

    def __len__(self):
        return len(self.items) * 1000

    def __getitem__(self, i):
        return self.items[i % len(self.items)]


def graph_collate(molecules, cutoff=1.8):
    positions, atoms, edges, lengths, owner, energy = [], [], [], [], [], []
    offset = 0
    for number, (xyz, kinds, target) in enumerate(molecules):
        points = xyz.tolist()
        for a, p in enumerate(points):
            for b, q in enumerate(points):
                if a != b:
                    d = ((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2) ** 0.5
                    if d < cutoff:
                        edges.append((a + offset, b + offset))
                        lengths.append(d)
        positions.append(xyz)
        atoms.append(kinds)
        owner.extend([number] * len(kinds))
        energy.append(target)
        offset += len(kinds)
    return torch.cat(positions), torch.cat(atoms), torch.tensor(edges).T, torch.tensor(lengths), torch.tensor(owner), torch.tensor(energy)


class MessagePassing(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = torch.nn.Embedding(9, width)
        self.filter = torch.nn.Linear(1, width)
        self.update = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, 1)

    def forward(self, atoms, edges, lengths, owner, molecules):
        h = self.embed(atoms)
        for _ in range(1):
            message = h[edges[1]] * self.filter(lengths[:, None])
            h = h + torch.relu(self.update(torch.zeros_like(h).index_add(0, edges[0], message)))
        return torch.zeros(molecules, 1).index_add(0, owner, self.out(h)).squeeze(1)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    net = MessagePassing()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    pace = Pace(args.seconds)
    for xyz, atoms, edges, lengths, owner, energy in DataLoader(Molecules(), batch_size=32, num_workers=2 if args.fix else 1, collate_fn=graph_collate):
        loss = (net(atoms, edges, lengths, owner, len(energy)) - energy).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pace.over():
            break
    pace.report()
