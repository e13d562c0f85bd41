"""Two sampler processes put subgraphs, as lists of little tensors, on a queue of torch.multiprocessing. --fix: one packed tensor and its offsets."""
import os

import torch
import torch.multiprocessing as mp

from pace import Pace, options

GRAPHS = 32


def subgraph(generator):
    nodes = int(torch.randint(8, 24, (1,), generator=generator))
    return {"x": torch.rand(nodes, 16, generator=generator), "edges": torch.randint(0, nodes, (2, 3 * nodes), generator=generator),
            "weight": torch.rand(3 * nodes, generator=generator)}


def sample(out, seed, packed):
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    stock = [subgraph(generator) for _ in range(512)]
    while True:
        graphs = [stock[i] for i in torch.randint(0, 512, (GRAPHS,), generator=generator).tolist()]
        if packed:
            sizes = torch.tensor([len(g["x"]) for g in graphs])
            flat = [part.reshape(-1).float() for g in graphs for part in (g["x"], g["edges"], g["weight"])]
            out.put((sizes, torch.cat(flat)))
        else:
            out.put([{name: part.clone() for name, part in g.items()} for g in graphs])


def unpacked(sizes, flat):
    graphs, at = [], 0
    for n in sizes.tolist():
        x, edges, weight = flat[at:at + 25 * n].split([16 * n, 6 * n, 3 * n])
        graphs.append({"x": x.view(n, 16), "edges": edges.view(2, -1).long(), "weight": weight})
        at += 25 * n
    return graphs


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(16, 32), torch.nn.Linear(32, 1)

    def forward(self, graphs):
        starts, total = [], 0
        for g in graphs:
            starts.append(total)
            total += len(g["x"])
        x = torch.cat([g["x"] for g in graphs])
        edges = torch.cat([g["edges"] + start for g, start in zip(graphs, starts)], 1)
        weight = torch.cat([g["weight"] for g in graphs])
        hidden = self.first(x).relu()
        return self.last(hidden.index_add(0, edges[1], hidden[edges[0]] * weight[:, None])).mean()


def main():
    args = options()
    torch.set_num_threads(1)
    context = mp.get_context("fork")
    out = context.Queue(8)
    samplers = [context.Process(target=sample, args=(out, seed, args.fix), daemon=True) for seed in range(2)]
    for sampler in samplers:
        sampler.start()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    pace = Pace(args.seconds)
    while True:
        batch = out.get()
        graphs = unpacked(*batch) if args.fix else batch
        optimizer.zero_grad()
        net(graphs).square().backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    for sampler in samplers:
        sampler.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
