"""Molecules as graphs: the workers hand over a list of them, each a dict of small tensors, and the trainer joins them.

--fix: the workers join them."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

SIZES = {"atoms": 16, "charges": 16, "places": 48, "bonds": 34, "energy": 1}


class Molecules(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(6)
        self.all = {key: torch.randn(512, size, generator=generator) for key, size in SIZES.items()}

    def __len__(self):
        return 200000

    def __getitem__(self, number):
        return {key: values[number % 512].clone() for key, values in self.all.items()}


def as_list(molecules):
    return molecules


def joined(molecules):
    return {key: torch.stack([molecule[key] for molecule in molecules]) for key in SIZES}


class Energy(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.parts = nn.ModuleDict({key: nn.Linear(size, width) for key, size in SIZES.items() if key != "energy"})
        self.out = nn.Linear(width, 1)

    def forward(self, batch):
        hidden = 0
        for key, part in self.parts.items():
            hidden = hidden + torch.tanh(part(batch[key]))
        return self.out(hidden)


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(Molecules(), batch_size=16, shuffle=True, num_workers=2, collate_fn=joined if args.fix else as_list)
    model = Energy()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    for batch in loader:
        if not args.fix:
            batch = joined(batch)
        loss = nn.functional.l1_loss(model(batch), batch["energy"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
