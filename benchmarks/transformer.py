"""Leave-one-out of a pretrained Transformer's size, beside a plain forward pass and captum's loop over tokens."""

import numpy as np
import torch
import transformers
from captum.attr import FeatureAblation

from benchmarks.timing import WORDS, cpu_seconds, made_up
from lib.datasets.batches import collate
from lib.importance.deletions import MAX_WORDS_PER_PASS, logits_without_each_token
from lib.models.evaluation import words_at_once
from lib.models.huggingface import HuggingFaceClassifier

SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}  # MiniLM's
LENGTHS = {25: 16, 100: 2}  # tokens of a text: how many texts


def rows() -> list[dict[str, str]]:
    """A row for each length: tokens a CPU second, and how many times as long captum takes for the same texts."""
    vocabulary = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = transformers.BertTokenizer(vocab=vocabulary)
    torch.manual_seed(0)
    bert = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=len(vocabulary), **SIZES))
    model = HuggingFaceClassifier(bert.eval(), tokenizer)
    return [row_of(model, tokenizer.mask_token_id, *of) for of in LENGTHS.items()]


@torch.no_grad()
def row_of(model: HuggingFaceClassifier, mask: int, tokens: int, texts: int) -> dict[str, str]:
    """One length. All three read `tokens` shortened, masked or whole texts for each text, start and end included."""
    batch = collate(made_up(texts, tokens, model.vocabulary), np.arange(texts))
    ids, at_once = model.pieces[batch.tokens][:, :, 0], max(1, words_at_once(model, MAX_WORDS_PER_PASS) // (tokens + 2))

    def forward(ids):
        return model.classifier(ids).logits

    def plain():
        for part in ids.repeat_interleave(tokens, dim=0).split(at_once):
            forward(part)

    captum = FeatureAblation(lambda ids: forward(ids)[:, 0])
    options = {"baselines": torch.full_like(ids[:1], mask), "perturbations_per_eval": max(1, at_once // texts)}
    calls = (lambda: logits_without_each_token(model, batch), plain, lambda: captum.attribute(ids, **options))
    spent = list(map(cpu_seconds, calls))
    speeds = [texts * tokens * (tokens + more) / of for more, of in zip((1, 2), spent[:2], strict=True)]
    row = {"tokens": f"{tokens}", "texts": f"{texts}", "leave-one-out, tokens a second": f"{speeds[0]:,.0f}"}
    row |= {"plain forward pass": f"{speeds[1]:,.0f}", "share": f"{speeds[0] / speeds[1]:.2f}"}
    return row | {"captum's FeatureAblation, times": f"{spent[2] / spent[0]:.2f}"}
