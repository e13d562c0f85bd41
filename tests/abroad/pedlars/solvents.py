"""Solubility of small molecules: a graph network on variable-size graphs."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

KINDS, WIDTH = 9, 24


def write_molecules(path, count=2000):
    rng = np.random.default_rng(13)
    atoms, bonds, n_atoms = [], [], rng.integers(8, 30, count)
    for n in n_atoms:
        atoms.append(rng.integers(0, KINDS, n))
        chain = np.stack([np.arange(n - 1), np.arange(1, n)])
        bonds.append(np.concatenate([chain, chain[::-1]], 1))
    np.savez(path, n=n_atoms, atoms=np.concatenate(atoms), bonds=np.concatenate(bonds, 1),
             logs=rng.normal(-2, 1, count).astype("float32"))


class Molecules(Dataset):
    def __init__(self, path):
        z = np.load(path)
        ends = np.cumsum(z["n"])
        self.atoms = np.split(z["atoms"], ends[:-1])
        self.bonds = np.split(z["bonds"], np.cumsum(2 * (z["n"] - 1))[:-1], 1)
        self.logs = z["logs"]

    def __len__(self):
        return len(self.logs)

    def __getitem__(self, i):
        return {"atoms": torch.from_numpy(self.atoms[i].copy()), "bonds": torch.from_numpy(self.bonds[i].copy()),
                "order": torch.ones(self.bonds[i].shape[1]), "logs": torch.tensor(self.logs[i])}


def as_list(graphs):
    return graphs


def join(graphs):
    sizes = [len(g["atoms"]) for g in graphs]
    starts = np.cumsum([0] + sizes[:-1]).tolist()
    return (torch.cat([g["atoms"] for g in graphs]),
            torch.cat([g["bonds"] + s for g, s in zip(graphs, starts)], 1),
            torch.cat([g["order"] for g in graphs]),
            torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes)),
            torch.stack([g["logs"] for g in graphs]))


class Solubility(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(KINDS, WIDTH), nn.Linear(WIDTH, 1)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, atoms, bonds, order, owner, count):
        x = self.emb(atoms)
        for layer in self.layers:
            mail = torch.zeros_like(x).index_add(0, bonds[1], x[bonds[0]] * order[:, None])
            x = x + torch.relu(layer(mail))
        return self.head(torch.zeros(count, WIDTH).index_add(0, owner, x)).squeeze(1)


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="solvents")
    try:
        write_molecules(os.path.join(folder, "mols.npz"))
        loader = DataLoader(Molecules(os.path.join(folder, "mols.npz")), 64, shuffle=True, num_workers=2,
                            persistent_workers=True, collate_fn=join if opts.fix else as_list)
        model = Solubility()
        opt = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over = Pace(opts.seconds), False
        while not over:
            for batch in loader:
                atoms, bonds, order, owner, logs = batch if opts.fix else join(batch)
                loss = nn.functional.mse_loss(model(atoms, bonds, order, owner, len(logs)), logs)
                opt.zero_grad()
                loss.backward()
                opt.step()
                over = pace.done()
                if over:
                    break
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
