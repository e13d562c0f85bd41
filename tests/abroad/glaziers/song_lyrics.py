"""Tags songs with a genre by the words of their lyrics: given word vectors (frozen) and a small head, trained with
torchrun on two ranks (gloo). The nodes are taken away at any time, so the work is saved. Starts torchrun by itself."""
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.run import main as torchrun
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from pace import Pace, options

VOCABULARY, WIDTH, WORDS, GENRES = 150_000, 64, 60, 10


class Lyrics(Dataset):
    def __init__(self, songs):
        generator = torch.Generator().manual_seed(11)
        self.words = torch.randint(0, VOCABULARY, (songs, WORDS), generator=generator)
        self.genres = torch.randint(0, GENRES, (songs,), generator=generator)

    def __len__(self):
        return len(self.genres)

    def __getitem__(self, i):
        return self.words[i], self.genres[i]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.EmbeddingBag(VOCABULARY, WIDTH, mode="mean").requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, GENRES))

    def forward(self, words):
        return self.head(self.vectors(words))


def save_checkpoint(folder, model, optimizer, step):
    path = os.path.join(folder, "last.pt")
    with open(path + ".part", "wb") as f:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".part", path)


def train(args, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    songs = Lyrics(20_000)
    sampler = DistributedSampler(songs, shuffle=True)
    loader = DataLoader(songs, batch_size=64, sampler=sampler, num_workers=0)
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.AdamW(model.module.head.parameters(), 1e-3)
    save_every = 200 if args.fix else 5
    pace, over, step, stop = Pace(args.seconds), False, 0, torch.zeros(1)
    while not stop:
        sampler.set_epoch(step)
        for words, genres in loader:
            step += 1
            loss = nn.functional.cross_entropy(model(words), genres)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % save_every == 0:
                if rank == 0:
                    save_checkpoint(folder, model.module, optimizer, step)
                dist.barrier()
            over = pace.done() or over
            if step % 10 == 0:               # the ranks end together
                stop.fill_(float(over))
                dist.all_reduce(stop)
                if stop:
                    break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        return train(options(), os.environ["CHECKPOINTS"])
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CHECKPOINTS"] = folder = tempfile.mkdtemp(prefix="lyrics")
    try:
        torchrun(["--standalone", "--nproc_per_node", "2", os.path.abspath(__file__), *sys.argv[1:]])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
