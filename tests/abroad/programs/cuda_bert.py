"""Hugging Face's Trainer over texts that are tokenised as they are taken, without a worker; the fix is four."""
import os
import random
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

import cuda

WORDS = ["w%d" % i for i in range(3000)]


class Texts(torch.utils.data.Dataset):
    def __init__(self):
        rng = random.Random(0)
        self.texts = [" ".join(rng.choices(WORDS, k=600)) for _ in range(2000)]
        self.tokenizer = Tokenizer(models.BPE(unk_token="?"))
        self.tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        self.tokenizer.train_from_iterator(self.texts[:200], trainers.BpeTrainer(vocab_size=1500, special_tokens=["?"], show_progress=False))

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        ids = []
        for offset in range(4):
            ids += self.tokenizer.encode(self.texts[(index + offset) % len(self.texts)]).ids
        return {"input_ids": torch.tensor(ids[:128]), "labels": index % 2}


class Rate(TrainerCallback):
    def __init__(self, seconds):
        self.meter = cuda.Meter(seconds)

    def on_step_end(self, args, state, control, **_):
        if self.meter.tick():
            control.should_training_stop = True


if __name__ == "__main__":
    args = cuda.arguments()
    config = BertConfig(vocab_size=1500, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
    rate = Rate(args.seconds)
    settings = TrainingArguments(output_dir=tempfile.mkdtemp(prefix="headrace-bert-"), per_device_train_batch_size=32, max_steps=1 << 20, bf16=True,
                                 dataloader_num_workers=4 if args.fix else 0, logging_strategy="no", save_strategy="no", report_to=[],
                                 disable_tqdm=True)
    Trainer(BertForSequenceClassification(config), settings, train_dataset=Texts(), callbacks=[rate]).train()
    rate.meter.show()
