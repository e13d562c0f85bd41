"""The device is the limit, and the step asks for the loss only now and then; twice as many workers bring nothing."""
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
    work = cuda.Kernels(10)
    meter = cuda.Meter(args.seconds)
    for number, batch in enumerate(DataLoader(Items(), batch_size=16, num_workers=8 if args.fix else 4, pin_memory=True)):
        batch = batch.to("cuda", non_blocking=True)
        out = work.step()
        if number % 10 == 0:
            out[0, 0].item()
        if meter.tick():
            break
    meter.show()
