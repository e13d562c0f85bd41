"""Storm damage claims, routed to a desk: a small BERT with transformers.Trainer."""
import os
import random
import shutil
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer,
                          TrainerCallback, TrainingArguments)
from transformers.utils import logging

from pace import Pace, options

WORDS = ("roof gutter hail water cellar fence tree branch garage window shingle policy excess adjuster photo estimate "
         "neighbour carport insulation ceiling mould pump contractor invoice attached letter storm night wind").split()
LENGTH = 48


def write_claims(count=240):
    rng = random.Random(5)
    texts = [" ".join(rng.choice(WORDS) + rng.choice(("", "s", ",", ".", "ing")) for _ in range(1500))
             for _ in range(count)]
    return Dataset.from_dict({"text": texts, "label": [rng.randrange(4) for _ in texts]})


def build_tokenizer(texts):
    bare = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bare.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    bare.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(tokenizer_object=bare, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]", model_max_length=LENGTH)


class ClaimCollator:
    """Text comes in, tensors go out."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, claims):
        batch = self.tokenizer([claim["text"] for claim in claims], truncation=True, padding="max_length",
                               return_tensors="pt")
        batch["labels"] = torch.tensor([claim["label"] for claim in claims])
        return batch


class Until(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = self.pace.done()


def main():
    args = options()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    disable_progress_bars()
    folder = tempfile.mkdtemp(prefix="claims")
    try:
        claims = write_claims()
        tokenizer = build_tokenizer(claims["text"][:20])
        collator = ClaimCollator(tokenizer)
        if args.fix:
            claims = claims.map(lambda rows: tokenizer(rows["text"], truncation=True, padding="max_length"),
                                batched=True, remove_columns="text", keep_in_memory=True)
            collator = None
        model = BertForSequenceClassification(BertConfig(
            vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=128, max_position_embeddings=64, num_labels=4))
        pace = Pace(args.seconds)
        training = TrainingArguments(output_dir=folder, per_device_train_batch_size=16, num_train_epochs=1000,
                                     logging_steps=100, save_strategy="no", report_to=[], use_cpu=True,
                                     remove_unused_columns=False, disable_tqdm=True, dataloader_num_workers=0)
        Trainer(model=model, args=training, train_dataset=claims, data_collator=collator,
                callbacks=[Until(pace)]).train()
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
