"""No worker: the trainer's own thread loads, then the device computes while it loads the next. The fix is four workers."""
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(5)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Costly(0.001), batch_size=16, num_workers=4 if args.fix else 0):
        work.step()
        batch.to("cuda").sum().item()
        if meter.tick():
            break
    meter.show()
