"""No worker: the trainer's own thread loads, then the device computes while it loads the next. The fix is four workers."""
import torch
from torch.utils.data import DataLoader, Dataset

import cuda
import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        harness.burn(0.001)
        return torch.full((1024,), float(index))


if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(5)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(Items(), batch_size=16, num_workers=4 if args.fix else 0):
        work.step()
        batch.to("cuda").sum().item()
        if meter.tick():
            break
    meter.show()
