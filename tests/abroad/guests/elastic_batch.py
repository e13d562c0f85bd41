"""Segmentation of microscopy; as one does on a device, torchvision's v2 transforms run on the whole batch in the training loop.
--fix is what the forum says: prefetch_factor 2 -> 8."""
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from pace import Pace, options

SIDE = 128


class Cells(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 255, (128, 1, SIDE, SIDE), generator=generator, dtype=torch.uint8)
        self.masks = (self.images > 128).to(torch.uint8)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return self.images[index % 128], self.masks[index % 128]


augment = v2.Compose([
    v2.ElasticTransform(alpha=40.0, sigma=6.0),
    v2.RandomAffine(degrees=15, scale=(0.9, 1.1)),
    v2.RandomHorizontalFlip(),
    v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
    v2.GaussianBlur(5),
])


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Cells(), batch_size=8, num_workers=1, prefetch_factor=8 if args.fix else 2)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1), torch.nn.Upsample(scale_factor=2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    for images, masks in loader:
        images, masks = augment(tv_tensors.Image(images), tv_tensors.Mask(masks))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(images), masks.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
