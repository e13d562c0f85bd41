"""Solubility of molecules: a message-passing net over batches of small graphs."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

ATOM_FEATURES, BOND_FEATURES = 16, 6


class Molecules(Dataset):
    """A molecule is a dictionary of tensors: atoms, bonds, their ends, charges, and the target."""

    def __init__(self, count=2000):
        generator = torch.Generator().manual_seed(2)
        self.molecules = []
        for _ in range(count):
            atoms = int(torch.randint(8, 24, (1,), generator=generator))
            bonds = atoms + 2
            self.molecules.append({
                "x": torch.randn(atoms, ATOM_FEATURES, generator=generator),
                "edge_index": torch.randint(0, atoms, (2, bonds), generator=generator),
                "edge_attr": torch.randn(bonds, BOND_FEATURES, generator=generator),
                "charge": torch.randn(atoms, generator=generator),
                "y": torch.randn(1, generator=generator),
            })

    def __len__(self):
        return len(self.molecules)

    def __getitem__(self, index):
        return {name: values.clone() for name, values in self.molecules[index].items()}


def merge(molecules):
    """One large graph out of many: the ends of the bonds are shifted."""
    sizes = torch.tensor([len(m["x"]) for m in molecules])
    shifts = torch.cumsum(sizes, 0) - sizes
    return {
        "x": torch.cat([m["x"] for m in molecules]),
        "edge_index": torch.cat([m["edge_index"] + s for m, s in zip(molecules, shifts)], 1),
        "edge_attr": torch.cat([m["edge_attr"] for m in molecules]),
        "charge": torch.cat([m["charge"] for m in molecules]),
        "y": torch.cat([m["y"] for m in molecules]),
        "graph": torch.repeat_interleave(torch.arange(len(molecules)), sizes),
    }


def as_list(molecules):
    return molecules


class SolubilityNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.atoms = nn.Linear(ATOM_FEATURES + 1, width)
        self.bonds = nn.Linear(BOND_FEATURES, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, batch):
        hidden = self.atoms(torch.cat([batch["x"], batch["charge"].unsqueeze(1)], 1))
        source, target = batch["edge_index"]
        message = torch.relu(hidden[source] + self.bonds(batch["edge_attr"]))
        hidden = torch.relu(self.mix(hidden.index_add(0, target, message)))
        pooled = torch.zeros(len(batch["y"]), hidden.shape[1]).index_add(0, batch["graph"], hidden)
        return self.out(pooled).squeeze(1)


def main():
    args = options()
    torch.set_num_threads(1)
    loader = DataLoader(Molecules(), batch_size=40, shuffle=True, num_workers=2, persistent_workers=True,
                        drop_last=True, collate_fn=merge if args.fix else as_list)
    net = SolubilityNet()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    pace, over = Pace(args.seconds), False
    while not over:
        for batch in loader:
            if not args.fix:
                batch = merge(batch)
            loss = nn.functional.mse_loss(net(batch), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
