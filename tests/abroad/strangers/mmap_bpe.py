"""A book in a memory-mapped file, tokenised as it is read."""
import mmap
import os
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader, Dataset

from pace import options, timed

VERSE = ("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
         "it was the epoch of belief, it was the season of darkness; chapter %d of volume %d.\n")


class Book(Dataset):
    def __init__(self, path, tokenizer, window=6000, length=1024):
        self.path, self.tokenizer, self.window, self.length = path, tokenizer, window, length
        self.text = None

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if self.text is None:
            with open(self.path, "rb") as f:
                self.text = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        at = (index * 7919) % (len(self.text) - self.window)
        piece = self.text[at:at + self.window].decode("ascii")
        return torch.tensor(self.tokenizer.encode(piece).ids[:self.length])


def train_tokenizer(lines):
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=400, special_tokens=["?"], show_progress=False))
    return tokenizer


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(512, 24), torch.nn.Linear(24, 512)

    def forward(self, ids):
        return torch.nn.functional.cross_entropy(self.out(self.embed(ids[:, :-1:8])).flatten(0, 1), ids[:, 1::8].flatten())


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    lines = [VERSE % (k * 37 % 1009, k) for k in range(4000)]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as book:
        book.write("".join(lines))
        book.flush()
        loader = DataLoader(Book(book.name, train_tokenizer(lines[:200])), batch_size=4, num_workers=2 if args.fix else 1,
                            collate_fn=lambda rows: torch.stack([r[:900] for r in rows]))
        model = LanguageModel()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        for ids in timed(loader, args.seconds):
            optimiser.zero_grad()
            model(ids).backward()
            optimiser.step()
