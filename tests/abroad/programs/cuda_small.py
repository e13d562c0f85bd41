"""A model of many small kernels: the trainer's thread takes longer to start them than the device to run them. More workers bring nothing."""
import torch
from torch.utils.data import DataLoader, Dataset

import cuda
import harness


class Items(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        harness.burn(0.0002)
        return torch.full((256,), float(index))


if __name__ == "__main__":
    args = cuda.arguments()
    model = torch.nn.Sequential(*[layer for _ in range(60) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.LayerNorm(256))]).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), foreach=False)
    meter = cuda.Meter(args.seconds)
    for batch in DataLoader(Items(), batch_size=16, num_workers=4 if args.fix else 2, pin_memory=True):
        loss = model(batch.to("cuda", non_blocking=True)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()
