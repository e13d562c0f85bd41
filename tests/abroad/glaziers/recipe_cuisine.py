"""Fine-tunes a small BERT that tells a recipe's cuisine, with Hugging Face's Trainer. The data set holds
the whole texts; the collator tokenises them and keeps the first 48 tokens."""
import os
import random
import shutil
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer, TrainerCallback,
                          TrainingArguments)

from pace import Pace, options

WORDS = ("stir whisk simmer onion garlic saffron noodle butter flour yeast ginger chilli coriander lemon thyme salmon "
         "fold bake grill chop slice until golden gently minutes tablespoon cup pinch of the and with into over").split()
CUISINES = 6


def write_recipe(chance):
    return " ".join(chance.choice(WORDS) + chance.choice(["", "s", "ed", "ing", ","]) for _ in range(700))


def make_tokenizer(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[PAD]", "[UNK]"],
                                                                   show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


class Recipes(Dataset):
    def __init__(self, texts, encodings=None):
        self.texts, self.encodings = texts, encodings

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        i %= len(self.texts)
        if self.encodings is not None:
            return {"ids": self.encodings[i], "label": i % CUISINES}
        return {"text": self.texts[i], "label": i % CUISINES}


class Collator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        if "ids" in rows[0]:
            batch = self.tokenizer.pad({"input_ids": [row["ids"] for row in rows]}, return_tensors="pt")
        else:
            batch = self.tokenizer([row["text"] for row in rows], truncation=True, max_length=48, padding=True,
                                   return_tensors="pt", return_token_type_ids=False)
        batch["labels"] = torch.tensor([row["label"] for row in rows])
        return batch


class PaceCallback(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        if self.pace.done():
            control.should_training_stop = True


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="recipes")
    try:
        chance = random.Random(4)
        texts = [write_recipe(chance) for _ in range(320)]
        tokenizer = make_tokenizer(texts[:60])
        encodings = tokenizer(texts, truncation=True, max_length=48)["input_ids"] if args.fix else None
        model = BertForSequenceClassification(BertConfig(vocab_size=400, hidden_size=32, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, num_labels=CUISINES))
        pace = Pace(args.seconds)
        trainer = Trainer(model=model, train_dataset=Recipes(texts, encodings), data_collator=Collator(tokenizer),
                          callbacks=[PaceCallback(pace)],
                          args=TrainingArguments(output_dir=folder, per_device_train_batch_size=32, max_steps=100_000,
                                                 remove_unused_columns=False, dataloader_num_workers=0, report_to=[],
                                                 dataloader_pin_memory=False, save_strategy="no", use_cpu=True,
                                                 logging_steps=200, disable_tqdm=True))
        trainer.train()
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
