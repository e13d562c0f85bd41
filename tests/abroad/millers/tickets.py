"""transformers.Trainer: sorts support tickets into queues with a small BERT of our own."""
import os
import random
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainerCallback, TrainingArguments)

from pace import Pace, options

WORDS = ("printer invoice login password reset broken screen delivery late refund order cannot open the my is "
         "account please help since yesterday error code window update slow phone app payment").split()
QUEUES = {"printer": 0, "invoice": 1, "login": 2, "delivery": 3}
LONGEST = 256


def make_tokenizer():
    vocab = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=LONGEST)


def make_tickets(count=2000):
    chance = random.Random(2)
    for _ in range(count):
        topic = chance.choice(list(QUEUES))
        words = [topic] + chance.choices(WORDS[3:], k=chance.randint(8, 50))
        chance.shuffle(words)
        yield " ".join(words), QUEUES[topic]


class TicketSet(torch.utils.data.Dataset):
    def __init__(self, tokenizer, padding):
        texts, self.labels = zip(*make_tickets())
        self.encoded = tokenizer(list(texts), truncation=True, padding=padding, max_length=LONGEST)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {key: self.encoded[key][i] for key in ("input_ids", "attention_mask")}
        return {**item, "labels": self.labels[i]}


class PaceCallback(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = self.pace.done()


def main():
    args = options()
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    tickets = TicketSet(tokenizer, padding=False if args.fix else "max_length")
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=192, max_position_embeddings=LONGEST, num_labels=len(QUEUES))
    pace = Pace(args.seconds)
    with tempfile.TemporaryDirectory(prefix="tickets-") as folder:
        settings = TrainingArguments(output_dir=folder, per_device_train_batch_size=16, max_steps=100_000,
                                     learning_rate=5e-4, use_cpu=True, report_to=[], save_strategy="no",
                                     logging_strategy="no", disable_tqdm=True)
        Trainer(model=BertForSequenceClassification(config), args=settings, train_dataset=tickets,
                data_collator=DataCollatorWithPadding(tokenizer), callbacks=[PaceCallback(pace)]).train()
    pace.show()


if __name__ == "__main__":
    main()
