"""One-shot detector for parcels on a conveyor: own anchors, own matching, plain PyTorch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pace import Pace, options

GRID, SIDE = 6, 96
BOXES = 3


def conveyor_images(count=256):
    generator = torch.Generator().manual_seed(8)
    images = torch.rand(count, 1, SIDE, SIDE, generator=generator) * 0.2
    corner = torch.randint(0, SIDE - 40, (count, BOXES, 2), generator=generator).float()
    size = torch.randint(12, 40, (count, BOXES, 2), generator=generator).float()
    boxes = torch.cat([corner, corner + size], -1)
    for image, found in zip(images, boxes.int().tolist()):
        for x0, y0, x1, y1 in found:
            image[0, y0:y1, x0:x1] += 0.5
    return TensorDataset(images, boxes)


def make_anchors():
    step = SIDE / GRID
    centre = (torch.arange(GRID) + 0.5) * step
    y, x = torch.meshgrid(centre, centre, indexing="ij")
    return torch.stack([x - 13, y - 13, x + 13, y + 13], -1).reshape(-1, 4)


def iou(a, b):
    width = torch.clamp(torch.min(a[2], b[2]) - torch.max(a[0], b[0]), min=0)
    height = torch.clamp(torch.min(a[3], b[3]) - torch.max(a[1], b[1]), min=0)
    common = width * height
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def match_anchors(anchors, boxes):
    best = torch.zeros(len(boxes), len(anchors))
    for n, image_boxes in enumerate(boxes):
        for k, anchor in enumerate(anchors):
            for box in image_boxes:
                best[n, k] = max(best[n, k], iou(anchor, box))
    return (best > 0.3).float()


def match_anchors_batched(anchors, boxes):
    a, b = anchors[None, :, None], boxes[:, None]
    size = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0)
    common = size.prod(-1)
    area = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    return ((common / (area - common)).amax(-1) > 0.3).float()


class ParcelDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 4, stride=4), nn.ReLU(),
                                      nn.Conv2d(16, 32, 4, stride=4), nn.ReLU(), nn.Conv2d(32, 1, 1))

    def forward(self, images):
        return self.features(images).flatten(1)


class DetectionLoss(nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.anchors = make_anchors()
        self.matcher = matcher

    def forward(self, scores, boxes):
        target = self.matcher(self.anchors, boxes)
        return nn.functional.binary_cross_entropy_with_logits(scores, target)


def main():
    args = options()
    loader = DataLoader(conveyor_images(), batch_size=8, shuffle=True)
    detector = ParcelDetector()
    criterion = DetectionLoss(match_anchors_batched if args.fix else match_anchors)
    optimizer = torch.optim.Adam(detector.parameters(), lr=2e-3)
    pace = Pace(args.seconds)
    over = False
    while not over:
        for images, boxes in loader:
            loss = criterion(detector(images), boxes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
            if over:
                break
    pace.show()


if __name__ == "__main__":
    main()
