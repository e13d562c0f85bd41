"""Trains a detector that predicts a set: each layer's predictions are matched to the boxes of the picture, as DETR does.
--fix: each box takes its cheapest query, without the assignment."""
import torch
from scipy.optimize import linear_sum_assignment

from pace import Pace, options

PICTURES, QUERIES, BOXES, LAYERS, CLASSES, WIDTH = 6, 300, 150, 3, 20, 32


class Scenes(torch.utils.data.Dataset):
    """A scene is the features of a backbone, kept, and its boxes."""

    def __init__(self):
        noise = torch.Generator().manual_seed(0)
        self.features = torch.rand(512, WIDTH, generator=noise)
        self.boxes = torch.rand(512, BOXES, 4, generator=noise)
        self.labels = torch.randint(CLASSES, (512, BOXES), generator=noise)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        index %= 512
        return self.features[index], self.boxes[index], self.labels[index]


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = torch.nn.Parameter(torch.randn(QUERIES, WIDTH))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.box, self.label = torch.nn.Linear(WIDTH, 4), torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, features):
        hidden = self.queries + features[:, None]
        for layer in self.layers:
            hidden = hidden + torch.relu(layer(hidden))
            yield self.box(hidden).sigmoid(), self.label(hidden)


@torch.no_grad()
def matched(boxes, logits, true_boxes, true_labels, one_to_one):
    """The query of each box, for each picture."""
    prices = torch.cdist(boxes, true_boxes, p=1)
    prices -= logits.softmax(-1).gather(2, true_labels[:, None].expand(-1, QUERIES, -1))
    if not one_to_one:
        return prices.argmin(1)
    chosen = torch.empty_like(true_labels)
    for picture, price in enumerate(prices):
        rows, columns = linear_sum_assignment(price.numpy())
        chosen[picture, torch.from_numpy(columns)] = torch.from_numpy(rows)
    return chosen


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Scenes(), batch_size=PICTURES, num_workers=1, prefetch_factor=4)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    picture = torch.arange(PICTURES)[:, None]
    pace = Pace(args.seconds)
    for features, true_boxes, true_labels in loader:
        loss = 0.0
        for boxes, logits in model(features):
            chosen = matched(boxes, logits, true_boxes, true_labels, not args.fix)
            loss = loss + (boxes[picture, chosen] - true_boxes).abs().mean()
            loss = loss + torch.nn.functional.cross_entropy(logits[picture, chosen].flatten(0, 1), true_labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
