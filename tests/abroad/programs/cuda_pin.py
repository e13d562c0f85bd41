"""One thread copies batches of 154 MB into pinned memory; the fix sends bytes, and the device makes floats of them."""
import torch
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    image = torch.randint(0, 255, (3, 224, 224), dtype=torch.uint8)
    work = cuda.Kernels(4)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Same(image if args.fix else image.float()), batch_size=256, num_workers=12, pin_memory=True):
        batch = batch.to("cuda", non_blocking=True).float()
        work.step()
        if meter.tick():
            break
    meter.show()
