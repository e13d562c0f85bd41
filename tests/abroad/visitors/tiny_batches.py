"""A DataLoader with batch_size=1, and the loop gathers 64 samples for each step. --fix: batch_size=64.
The pace is counted in 64 samples in both."""
import torch
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

STEP = 64


class Transitions(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.state = torch.rand(20000, 24, generator=generator)
        self.action = torch.randint(0, 6, (20000,), generator=generator)
        self.reward = torch.rand(20000, generator=generator)

    def __len__(self):
        return 1 << 22

    def __getitem__(self, index):
        index %= 20000
        return self.state[index], self.action[index], self.reward[index]


def main():
    args = options()
    torch.set_num_threads(1)
    q = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.ReLU(), torch.nn.Linear(64, 6))
    optimizer = torch.optim.Adam(q.parameters())
    loader = DataLoader(Transitions(), batch_size=STEP if args.fix else 1, num_workers=2)
    pace = Pace(args.seconds)
    gathered, count = [], 0
    for batch in loader:
        gathered.append(batch)
        count += len(batch[0])
        if count < STEP:
            continue
        state, action, reward = (torch.cat(parts) for parts in zip(*gathered))
        gathered, count = [], 0
        loss = (q(state).gather(1, action[:, None]).squeeze(1) - reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()


if __name__ == "__main__":
    main()
