"""Folk song playlists: song vectors from what stands side by side in a list, trained with Accelerate."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

SONGS, WIDTH = 150_000, 48


class Neighbours(IterableDataset):
    """Batches of (song, its neighbour, some songs that are not)."""

    def __init__(self, batch=256, strangers=5):
        self.batch, self.strangers = batch, strangers

    def __iter__(self):
        worker = get_worker_info()
        generator = torch.Generator().manual_seed(worker.id if worker else 0)
        while True:
            song = torch.randint(0, SONGS, (self.batch,), generator=generator)
            near = (song + torch.randint(1, 9, (self.batch,), generator=generator)) % SONGS
            far = torch.randint(0, SONGS, (self.batch, self.strangers), generator=generator)
            yield song, near, far


class SongVectors(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.centre = nn.Embedding(SONGS, WIDTH, sparse=sparse)
        self.context = nn.Embedding(SONGS, WIDTH, sparse=sparse)
        nn.init.normal_(self.centre.weight, std=0.1)
        nn.init.normal_(self.context.weight, std=0.1)

    def forward(self, song, near, far):
        song = self.centre(song)
        good = (song * self.context(near)).sum(1)
        bad = torch.einsum("bw,bsw->bs", song, self.context(far))
        return -(nn.functional.logsigmoid(good).mean() + nn.functional.logsigmoid(-bad).mean())


def main():
    args = options()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model = SongVectors(sparse=args.fix)
    if args.fix:
        optimizer = torch.optim.SparseAdam(model.parameters(), lr=2e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(Neighbours(), batch_size=None, num_workers=1, prefetch_factor=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    pace, shown = Pace(args.seconds), 0.0
    for step, (song, near, far) in enumerate(loader):
        loss = model(song, near, far)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        shown = 0.98 * shown + 0.02 * loss.item()
        if step % 500 == 499:
            accelerator.print(f"step {step + 1} loss {shown:.3f}")
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
