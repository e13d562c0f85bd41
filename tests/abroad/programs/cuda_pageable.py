"""Batches of 77 MB go to the device from pageable memory, by the trainer's thread; the fix pins them in another thread."""
import torch
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(4)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Same(torch.rand(3, 224, 224)), batch_size=128, num_workers=8, pin_memory=args.fix):
        batch = batch.to("cuda", non_blocking=args.fix)
        work.step()
        if meter.tick():
            break
    meter.show()
