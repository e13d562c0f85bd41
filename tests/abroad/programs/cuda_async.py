"""One worker loads; the trainer only queues kernels, and waits in next() while the device still computes. The fix is four workers:
then the device is the limit."""
import torch
from torch.utils.data import DataLoader, Dataset

import cuda
import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 18

    def __getitem__(self, index):
        harness.burn(0.0008)
        return torch.full((1024,), float(index))


if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(8)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(Items(), batch_size=16, num_workers=4 if args.fix else 1, pin_memory=True):
        batch = batch.to("cuda", non_blocking=True)
        work.step()
        if meter.tick():
            break
    meter.show()
