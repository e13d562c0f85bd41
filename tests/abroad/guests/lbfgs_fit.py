"""A physics-informed network for the heat equation: points from a DataLoader, L-BFGS with its strong Wolfe search. --fix: max_iter 20 -> 3."""
import math

import torch

from pace import Pace, options


class Points(torch.utils.data.IterableDataset):
    """Collocation points, drawn by Latin hypercube."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        generator = torch.Generator().manual_seed(info.id if info else 0)
        steps = torch.arange(self.count)
        while True:
            columns = [(torch.randperm(self.count, generator=generator) + torch.rand(self.count, generator=generator)) / self.count for _ in range(2)]
            edge = steps[:64] / 64
            yield torch.stack(columns, 1), torch.stack([edge, torch.zeros(64)], 1)


class Field(torch.nn.Module):
    def __init__(self, width=48):
        super().__init__()
        sizes = [2, width, width, width, 1]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, xt):
        for layer in self.layers[:-1]:
            xt = torch.tanh(layer(xt))
        return self.layers[-1](xt)


def residual(field, inside):
    inside = inside.requires_grad_(True)
    u = field(inside)
    first = torch.autograd.grad(u.sum(), inside, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), inside, create_graph=True)[0][:, 0]
    return (first[:, 1] - 0.1 * second).square().mean()


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Points(256), batch_size=None, num_workers=1, prefetch_factor=4)
    field = Field()
    optimizer = torch.optim.LBFGS(field.parameters(), lr=0.5, max_iter=3 if args.fix else 20, tolerance_grad=0, tolerance_change=0,
                                  line_search_fn="strong_wolfe")
    pace = Pace(args.seconds)
    for inside, edge in loader:
        wanted = torch.sin(math.pi * edge[:, :1])

        def closure():
            optimizer.zero_grad()
            loss = residual(field, inside) + 10 * (field(edge) - wanted).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
