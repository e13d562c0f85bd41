"""The device is the limit, and the step asks for the loss only now and then; twice as many workers bring nothing."""
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    work = cuda.Kernels(10)
    meter = cuda.Meter(args.seconds)
    for number, batch in enumerate(DataLoader(cuda.Costly(0.0008), batch_size=16, num_workers=8 if args.fix else 4, pin_memory=True)):
        batch = batch.to("cuda", non_blocking=True)
        out = work.step()
        if number % 10 == 0:
            out[0, 0].item()
        if meter.tick():
            break
    meter.show()
