"""Plant families from herbarium sheets: DistributedDataParallel over two gloo ranks on one machine."""
import os
import shutil
import socket
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

RANKS = 2


def scan_sheets(folder, each=24):
    """Two collections: kew sent thumbnails, paris its full scans."""
    rng = np.random.default_rng(4)
    for collection, size in (("kew", (160, 200)), ("paris", (960, 1200))):
        for i in range(each):
            coarse = rng.integers(0, 255, (25, 20, 3), dtype=np.uint8)
            sheet = Image.fromarray(coarse).resize(size, Image.BICUBIC)
            sheet.save(os.path.join(folder, f"{collection}-{i:03d}.jpg"), quality=88)


class Sheets(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return 50_000

    def __getitem__(self, index):
        path = self.files[index % len(self.files)]
        sheet = Image.open(path).convert("RGB").resize((96, 96), Image.BILINEAR)
        pixels = torch.from_numpy(np.asarray(sheet).copy()).permute(2, 0, 1).float() / 255
        return pixels, index % 10


def shard(folder, rank, interleave):
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    if interleave:
        return files[rank::RANKS]
    share = len(files) // RANKS
    return files[rank * share:(rank + 1) * share]


def build_net():
    return nn.Sequential(nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def train(rank, port, folder, args):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    loader = DataLoader(Sheets(shard(folder, rank, args.fix)), batch_size=8)
    net = DistributedDataParallel(build_net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    pace = Pace(args.seconds)
    for sheets, family in loader:
        loss = nn.functional.cross_entropy(net(sheets), family)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        over = torch.tensor(float(pace.done()))
        dist.all_reduce(over)
        if over:
            break
    if rank == 0:
        pace.show()
    dist.barrier()
    del net, optimizer, loss
    dist.destroy_process_group()


if __name__ == "__main__":
    args = options()
    folder = tempfile.mkdtemp(prefix="herbarium-")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    try:
        scan_sheets(folder)
        mp.spawn(train, args=(port, folder, args), nprocs=RANKS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
