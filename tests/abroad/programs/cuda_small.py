"""A model of many small kernels: the trainer's thread takes longer to start them than the device to run them. More workers bring nothing."""
import torch
from torch.utils.data import DataLoader

import cuda

if __name__ == "__main__":
    args = cuda.arguments()
    model = torch.nn.Sequential(*[layer for _ in range(60) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.LayerNorm(256))]).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), foreach=False)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(cuda.Costly(0.0002, 256), batch_size=16, num_workers=4 if args.fix else 2, pin_memory=True):
        loss = model(batch.to("cuda", non_blocking=True)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()
