"""Leave-one-out of a pretrained Transformer's size, beside a plain forward pass and captum's loop over tokens."""

import time

import numpy as np
import torch
import transformers
from captum.attr import FeatureAblation

from lib.datasets.batches import collate
from lib.datasets.corpus import Instance, Split
from lib.importance.deletions import logits_without_each_token
from lib.models.evaluation import words_at_once
from lib.models.huggingface import HuggingFaceClassifier

WORDS = [f"w{number}" for number in range(2000)]
SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}  # MiniLM's
LENGTHS = {25: 16, 100: 2}  # tokens of a text: how many texts


def rows() -> list[dict[str, str]]:
    """A row for each length: tokens a CPU second, and how many times as long captum takes for the same texts."""
    vocabulary = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = transformers.BertTokenizer(vocab=vocabulary)
    torch.manual_seed(0)
    bert = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=len(vocabulary), **SIZES))
    return [row_of(HuggingFaceClassifier(bert.eval(), tokenizer), *of) for of in LENGTHS.items()]


@torch.no_grad()
def row_of(model: HuggingFaceClassifier, tokens: int, texts: int) -> dict[str, str]:
    """One length. All three read `tokens` shortened, masked or whole texts for each text, start and end included."""
    drawn = np.random.default_rng(0).choice(WORDS, (texts, tokens)).tolist()
    split = Split("test", tuple(Instance("", "", tuple(words), 0) for words in drawn), model.vocabulary)
    batch = collate(split, np.arange(texts))
    ids, at_once = model.ids[batch.tokens], max(1, words_at_once(model, 2**11) // (tokens + 2))

    def forward(ids):
        return model.classifier(ids).logits

    def plain():
        for part in ids.repeat_interleave(tokens, dim=0).split(at_once):
            forward(part)

    captum = FeatureAblation(lambda ids: forward(ids)[:, 0])
    masks = torch.full_like(ids[:1], model.ids[len(model.ids) - len(WORDS) - 1])
    options = {"baselines": masks, "perturbations_per_eval": max(1, at_once // texts)}
    spent = [seconds(run) for run in (lambda: logits_without_each_token(model, batch), plain)]
    spent.append(seconds(lambda: captum.attribute(ids, **options)))
    speeds = [texts * tokens * (tokens + more) / of for more, of in zip((1, 2), spent[:2], strict=True)]
    row = {"tokens": f"{tokens}", "texts": f"{texts}", "leave-one-out, tokens a second": f"{speeds[0]:,.0f}"}
    row |= {"plain forward pass": f"{speeds[1]:,.0f}", "share": f"{speeds[0] / speeds[1]:.2f}"}
    return row | {"captum's FeatureAblation, times": f"{spent[2] / spent[0]:.2f}"}


def seconds(function) -> float:
    """CPU seconds: the lesser of two runs."""
    times = []
    for _ in range(2):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return min(times)
