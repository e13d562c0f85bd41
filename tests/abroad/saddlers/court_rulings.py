"""Which chamber gave the ruling? Headnotes of rulings streamed with HF datasets, a bag of tokens in torch."""
import gzip
import json
import os
import random
import shutil
import tempfile

folder = tempfile.mkdtemp(prefix="rulings")
os.environ.update(HF_HOME=os.path.join(folder, "hf"), HF_HUB_OFFLINE="1")

import torch
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from pace import Pace, options

CHAMBERS, BATCH, LENGTH = 6, 64, 32


def publish(files=4, rows=2000):
    rng = random.Random(19)
    terms = ["".join(rng.choices("aeioubcdfglmnprstv", k=rng.randint(3, 9))) for _ in range(3000)]
    headnotes = []
    for number in range(files):
        with gzip.open(os.path.join(folder, f"rulings{number}.jsonl.gz"), "wt", compresslevel=1) as out:
            for _ in range(rows):
                chamber = rng.randrange(CHAMBERS)
                words = rng.choices(terms[chamber * 300:chamber * 300 + 1200], k=rng.randint(5, 12))
                headnotes.append(" ".join(words))
                out.write(json.dumps({"text": headnotes[-1], "chamber": chamber}) + "\n")
    return headnotes[:800]


def vocabulary(headnotes):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(headnotes, trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def main():
    args = options()
    try:
        tokenizer = vocabulary(publish())

        def encode(headnote):
            return tokenizer(headnote["text"], truncation=True, padding="max_length", max_length=LENGTH,
                             return_token_type_ids=False, return_attention_mask=False)

        rulings = load_dataset("json", data_files=os.path.join(folder, "*.jsonl.gz"), split="train", streaming=True)
        if args.fix:
            rulings = rulings.map(encode, batched=True, batch_size=256, remove_columns=["text"])
        else:
            rulings = rulings.map(encode, remove_columns=["text"])

        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.EmbeddingBag(2000, 16, padding_idx=0), torch.nn.ReLU(),
                                    torch.nn.Linear(16, CHAMBERS))
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        pace, over, epoch = Pace(args.seconds), False, 0
        while not over:
            for batch in rulings.iter(batch_size=BATCH, drop_last_batch=True):
                loss = torch.nn.functional.cross_entropy(model(torch.tensor(batch["input_ids"])),
                                                         torch.tensor(batch["chamber"]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
            epoch += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
