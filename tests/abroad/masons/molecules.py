"""Solubility of molecules: graphs of varying size, a small message-passing net that takes lists of tensors."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class Molecules(Dataset):
    def __init__(self, count=3000):
        rng = np.random.default_rng(9)
        self.graphs = []
        for _ in range(count):
            atoms = int(rng.integers(8, 30))
            bonds = rng.integers(0, atoms, (2, atoms * 2))
            self.graphs.append((rng.integers(0, 12, atoms), bonds, rng.integers(0, 4, atoms * 2),
                                rng.normal(size=(atoms, 3)).astype(np.float32), np.float32(rng.normal())))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, number):
        kinds, bonds, orders, places, solubility = self.graphs[number]
        return {"kinds": torch.tensor(kinds), "bonds": torch.tensor(bonds), "orders": torch.tensor(orders),
                "places": torch.tensor(places), "solubility": torch.tensor(solubility)}


def as_lists(graphs):
    """Sizes differ, so each field is a list of tensors."""
    return {name: [graph[name] for graph in graphs] for name in graphs[0]}


def join(batch):
    """One large graph of all molecules: the bonds' numbers move on."""
    sizes = torch.tensor([len(kinds) for kinds in batch["kinds"]])
    starts = torch.cumsum(sizes, 0) - sizes
    bonds = torch.cat([one + start for one, start in zip(batch["bonds"], starts)], 1)
    return {"kinds": torch.cat(batch["kinds"]), "bonds": bonds, "orders": torch.cat(batch["orders"]), "places": torch.cat(batch["places"]),
            "owner": torch.repeat_interleave(torch.arange(len(sizes)), sizes), "solubility": torch.stack(batch["solubility"])}


def as_one_graph(graphs):
    return join(as_lists(graphs))


class MessageNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.kind, self.order = nn.Embedding(12, width), nn.Embedding(4, width)
        self.place, self.message, self.out = nn.Linear(3, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, graph):
        atoms = self.kind(graph["kinds"]) + self.place(graph["places"])
        source, target = graph["bonds"]
        for _ in range(2):
            sent = torch.relu(self.message(atoms[source] + self.order(graph["orders"])))
            atoms = atoms.index_add(0, target, sent)
        pooled = torch.zeros(len(graph["solubility"]), atoms.shape[1]).index_add(0, graph["owner"], atoms)
        return self.out(pooled).squeeze(1)


def main():
    asked = options()
    torch.set_num_threads(1)
    loader = DataLoader(Molecules(), batch_size=48, shuffle=True, num_workers=2, persistent_workers=True,
                        collate_fn=as_one_graph if asked.fix else as_lists)
    model = MessageNet()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    pace = Pace(asked.seconds)
    while True:
        for batch in loader:
            graph = batch if asked.fix else join(batch)
            loss = nn.functional.mse_loss(model(graph), graph["solubility"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                return pace.show()


if __name__ == "__main__":
    main()
