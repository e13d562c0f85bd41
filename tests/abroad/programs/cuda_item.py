"""The device is the limit and the trainer waits for it in every step; twice as many workers bring nothing."""
import torch
from torch.utils.data import DataLoader, Dataset

import cuda
import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        harness.burn(0.0004)
        return torch.full((1024,), float(index))


if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(12)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(Items(), batch_size=16, num_workers=4 if args.fix else 2):
        batch = batch.to("cuda")
        work.step()[0, 0].item()
        if meter.tick():
            break
    meter.show()
