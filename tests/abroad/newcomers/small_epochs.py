"""Few-shot training: every task is an epoch of 16 batches over its own images. --fix: persistent_workers=True."""
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options


class FewShot(Dataset):
    def __init__(self, shots=128):
        torch.manual_seed(2)
        self.images = torch.rand(shots, 3, 32, 32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        if i % 2:
            image = image.flip(-1)
        return torch.nn.functional.avg_pool2d(image, 2), i % 5


def run_epoch(model, optimizer, loader, pace):
    for images, classes in loader:
        loss = torch.nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.over():
            return False
    return True


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 196, 5))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loader = DataLoader(FewShot(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=args.fix)
    pace = Pace(args.seconds)
    while run_epoch(model, optimizer, loader, pace):
        pass
    pace.report()


if __name__ == "__main__":
    main()
