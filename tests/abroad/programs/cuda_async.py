"""One worker loads; the trainer only queues kernels, and waits in next() while the device still computes. The fix is four workers:
then the device is the limit."""
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(8)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Costly(0.0008), batch_size=16, num_workers=4 if args.fix else 1, pin_memory=True):
        batch = batch.to("cuda", non_blocking=True)
        work.step()
        if meter.tick():
            break
    meter.show()
