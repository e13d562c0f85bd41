"""The device is the limit and the trainer waits for it in every step; twice as many workers bring nothing."""
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(12)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Costly(0.0004), batch_size=16, num_workers=4 if args.fix else 2):
        batch = batch.to("cuda")
        work.step()[0, 0].item()
        if meter.tick():
            break
    meter.show()
