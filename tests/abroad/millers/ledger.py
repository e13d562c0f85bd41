"""Accelerate: which account a bookkeeping entry goes to, with an embedding for every supplier.
The machine is a preemptible one, hence the saved states."""
import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

SUPPLIERS, WIDTH, ACCOUNTS = 150_000, 48, 40


def make_entries(count=40_000):
    generator = torch.Generator().manual_seed(11)
    suppliers = torch.randint(0, SUPPLIERS, (count, 3), generator=generator)
    amounts = torch.randn(count, 4, generator=generator)
    accounts = (suppliers[:, 0] % ACCOUNTS).long()
    return TensorDataset(suppliers, amounts, accounts)


class Booking(nn.Module):
    def __init__(self):
        super().__init__()
        self.supplier = nn.EmbeddingBag(SUPPLIERS, WIDTH, mode="mean", sparse=True)
        self.head = nn.Sequential(nn.Linear(WIDTH + 4, 128), nn.ReLU(), nn.Linear(128, ACCOUNTS))

    def forward(self, suppliers, amounts):
        return self.head(torch.cat([self.supplier(suppliers), amounts], dim=1))


def main():
    args = options()
    torch.set_num_threads(1)
    save_every = 1000 if args.fix else 10
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        accelerator = Accelerator(cpu=True, project_config=ProjectConfiguration(
            project_dir=folder, automatic_checkpoint_naming=True, total_limit=2))
        model = Booking()
        sparse = torch.optim.SparseAdam(list(model.supplier.parameters()), lr=1e-2)
        dense = torch.optim.Adam(model.head.parameters(), lr=1e-3)
        loader = DataLoader(make_entries(), batch_size=128, shuffle=True)
        model, sparse, dense, loader = accelerator.prepare(model, sparse, dense, loader)
        pace, step, over = Pace(args.seconds), 0, False
        while not over:
            for suppliers, amounts, accounts in loader:
                loss = nn.functional.cross_entropy(model(suppliers, amounts), accounts)
                accelerator.backward(loss)
                sparse.step()
                dense.step()
                sparse.zero_grad()
                dense.zero_grad()
                step += 1
                if step % save_every == 0:
                    accelerator.save_state()
                over = pace.done()
                if over:
                    break
        kept = os.path.join(folder, "checkpoints")
        print(f"loss {loss.item():.3f}, states kept {len(os.listdir(kept)) if os.path.isdir(kept) else 0}")
        pace.show()


if __name__ == "__main__":
    main()
