"""CT volumes given as numpy arrays in dataclasses, which go through the workers' pipe as pickles. --fix: as torch tensors, through shared memory."""
import dataclasses

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


@dataclasses.dataclass
class Patch:
    voxels: object
    spacing: tuple
    patient: str


class Scans(Dataset):
    def __init__(self, as_tensor):
        self.scans = [np.random.default_rng(i).random((64, 160, 160), dtype=np.float32) for i in range(3)]
        self.as_tensor = as_tensor

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        patch = self.scans[i % 3]
        return Patch(torch.from_numpy(patch) if self.as_tensor else patch, (1.0, 0.7, 0.7), f"p{i % 3}")


def first(batch):
    return batch


class Segmenter:
    def __init__(self):
        self.net = torch.nn.Conv3d(1, 2, 3, stride=8)
        self.opt = torch.optim.SGD(self.net.parameters(), 0.01)

    def step(self, patches):
        for patch in patches:
            x = torch.as_tensor(patch.voxels)[None, None]
            loss = self.net(x).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    trainer, pace = Segmenter(), Pace(args.seconds)
    for patches in DataLoader(Scans(args.fix), batch_size=2, num_workers=2, collate_fn=first):
        trainer.step(patches)
        if pace.over():
            break
    pace.report()
