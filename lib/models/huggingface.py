"""A Hugging Face classifier behind the interface: one head's row of the classifying token is its attention.

BERT and its like read out the state of their first word. What a head of a layer lets that word see is a mechanism: it
can be put back. What is averaged over heads, or followed through the layers, is an explanation: a quantity only.
Needs the package transformers, which nothing else here needs.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import END, START, Corpus
from lib.datasets.subwords import corpus_in_subwords, ids_of, vocabulary_of
from lib.models.huggingface_hooks import EveryLayer, Row, Seen, of_text, spoken
from lib.models.interface import ModelOutput
from lib.models.transformer import Way, between_words, refuse_unknown
from lib.projections import softmax

WORDS = 2**11  # given to the model at once: every layer of a large one keeps a lot of each
ROWS = 2**12  # classifying tokens read out at once


@dataclass(frozen=True)
class HeadOutput(ModelOutput):
    """What a classifier shows of itself, where its attention is one head's row of the classifying token.

    scores  (batch, word) of that row, start and end included
    hidden  (batch, word, size) the values that the head weighs
    heads   (batch, head, size) what every head of the layer says at the classifying token
    state   (batch, hidden) that token's state before the layer; None where what follows cannot be run by itself
    """

    heads: Tensor | None = None
    state: Tensor | None = None


class HuggingFaceClassifier(nn.Module):
    """A sequence classifier of transformers that reads out its first word, with the interface.

    `heads` lists every (layer, head) of it.

    Args:
        classifier: such as AutoModelForSequenceClassification makes. It stays as it is; its parameters are shared.
        tokenizer: its own. Batches must be of a corpus in its subwords (lib.datasets.subwords).
        attention: (layer, head), the mechanism, each from 0, or from the end with -1; or an explanation, "averaged" or
            "rollout": then nothing can be put in place of it.
        order: which of the model's outputs is each class of the corpus; None: they are in its order.
    Raises:
        ImportError: transformers is not installed.
        ValueError: the model is no classifier, reads out more than its first word, or does not show its attention.
    """

    reads_first = True  # the first word's state alone decides
    words_at_once = WORDS

    def __init__(self, classifier: nn.Module, tokenizer, attention: Way = (-1, 0), order: Sequence[int] | None = None):
        super().__init__()
        refuse_other_tasks(classifier)
        refuse_unknown(attention)
        self.vocabulary = vocabulary_of(tokenizer)
        self.register_buffer("ids", torch.tensor(ids_of(tokenizer)), persistent=False)
        self.order = list(range(classifier.config.num_labels) if order is None else order)
        self.longest = getattr(classifier.config, "max_position_embeddings", None)
        self.seen = Seen(classifier)
        self.to(next(classifier.parameters()).device)
        self.heads = [(layer, head) for layer in range(self.seen.layers) for head in range(self.seen.heads)]
        self.explanation = attention if isinstance(attention, str) else None
        self.row = one_of(self.heads, (-1, 0) if self.explanation else attention)

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for a batch; `attention` (batch, word), where given, replaces the head's own."""
        return self.from_embeddings(self._embedded(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same, with `embeddings` (batch, word, embedding) in place of the table's, before positions are added."""
        if torch.is_grad_enabled() and not embeddings.requires_grad:
            embeddings.requires_grad_()
        if self.explanation:
            return self._explained(embeddings, batch) if attention is None else self._refuse_explanation()
        return self._output(embeddings, batch, attention)

    def read_out(self, output: HeadOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, word) or (batch, draw, word) -> the same with class for word.

        What special tokens hold stays fixed; the rest is spread as the attention says. Where the head is of the last
        layer, only what follows it is computed again, and for the first word alone; else the whole model.
        """
        self._refuse_explanation()
        draws = attention if attention.dim() == 3 else attention[:, None]
        said = spoken(output.scores, output.hidden, output.mask, draws)
        row = torch.arange(len(said), device=said.device).repeat_interleave(said.shape[1])
        size = ROWS if output.state is not None else max(1, WORDS // output.mask.shape[1])
        parts = zip(row.split(size), said.flatten(0, 1).split(size), strict=True)
        logits = torch.cat([self._onward(output, *part) for part in parts]).view(*said.shape[:2], -1)
        return logits if attention.dim() == 3 else logits[:, 0]

    def token_logits(self, output: ModelOutput) -> None:
        """None: the read-out goes through all that follows the head, and is not affine."""
        return None

    def projection(self, scores: Tensor, mask: Tensor) -> Tensor:
        """How scores become attention: softmax over the text's own subwords."""
        self._refuse_explanation()
        return softmax(scores, mask)

    def without_text(self, batch: Batch) -> Tensor:
        """Logits of nothing but start and end, (batch, class): the same for every text."""
        nothing = self._embedded(batch.tokens.new_tensor([[START, END]]))
        logits = self.seen(nothing, torch.ones_like(nothing[:, :, 0], dtype=torch.bool), EveryLayer())
        return logits[:, self.order].expand(len(batch), -1)

    def inner_attention(self, batch: Batch) -> Tensor:
        """The attention of all layers, (batch, layer, head, word, word): rows sum to 1 over the text's words."""
        return self._inner(self._embedded(batch.tokens), batch)

    def _inner(self, embeddings: Tensor, batch: Batch) -> Tensor:
        look = EveryLayer()
        self.seen(embeddings, of_text(batch.mask), look)
        return torch.stack(look.weights, dim=1)

    def with_inner_attention(self, batch: Batch, imposed: Mapping[tuple[int, int], Tensor]) -> ModelOutput:
        """The output with weights (batch, word, word) put in place of those of some heads, (layer, head) -> weights."""
        return self._output(self._embedded(batch.tokens), batch, imposed=imposed)

    def _output(
        self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None, imposed: Mapping | None = None
    ) -> HeadOutput:
        refuse_pairs(batch)
        look = Row(self.row, batch.mask, attention, imposed=imposed)
        logits = self.seen(embeddings, of_text(batch.mask), look)[:, self.order]
        attention = softmax(look.scores, batch.mask) if attention is None else attention
        alone = self.seen.tail is not None and self.row[0] == self.seen.layers - 1
        seen = look.scores, attention, batch.mask, look.values, embeddings
        return HeadOutput(logits, *seen, heads=look.heads, state=look.state if alone else None)

    def _explained(self, embeddings: Tensor, batch: Batch) -> ModelOutput:
        """The output whose attention is an explanation: the first word's row of what it says of each pair of words."""
        output = self._output(embeddings, batch)
        row = between_words(self._inner(embeddings, batch), self.explanation)[:, 0].masked_fill(~batch.mask, 0)
        attention = row / row.sum(dim=1, keepdim=True)
        return ModelOutput(output.logits, row, attention, batch.mask, output.hidden, output.embeddings)

    def _embedded(self, tokens: Tensor) -> Tensor:
        """(batch, word, embedding), in the graph whenever gradients are enabled."""
        if self.longest and tokens.shape[1] > self.longest:
            raise ValueError(
                f"a text has {tokens.shape[1]} subwords, start and end included; the model reads {self.longest}"
            )
        if tokens.numel() and int(tokens.max()) >= len(self.ids):
            raise ValueError("the batch does not hold subwords of this model's tokenizer; use corpus_in_subwords")
        embeddings = self.seen.whole.get_input_embeddings()(self.ids[tokens])
        if torch.is_grad_enabled() and not embeddings.requires_grad:
            embeddings.requires_grad_()
        return embeddings

    def _onward(self, output: HeadOutput, row: Tensor, said: Tensor) -> Tensor:
        """Logits (case, class) of the texts `row` (case,) when the head says `said` (case, size)."""
        if output.state is None:
            look = Row(self.row, output.mask[row], said=said)
            return self.seen(output.embeddings[row], of_text(output.mask)[row], look)[:, self.order]
        this = torch.arange(output.heads.shape[1], device=said.device) == self.row[1]
        heads = torch.where(this[:, None], said[:, None], output.heads[row])
        return self.seen.from_heads(output.state[row], heads)[:, self.order]

    def _refuse_explanation(self) -> None:
        if self.explanation:
            raise ValueError(
                f"{self.explanation!r} is an explanation, not a mechanism: the model computes nothing with it, so "
                "nothing can be put in its place; choose a head, (layer, head)"
            )


def pretrained(
    source: str | Path, corpus: Corpus, attention: Way = (-1, 0), of: str = "text", **options
) -> tuple[HuggingFaceClassifier, Corpus]:
    """A classifier with the interface, and the corpus in the subwords that it reads.

    Args:
        source: a folder with model and tokenizer, or a name on the hub, from where it is downloaded.
        attention: as of HuggingFaceClassifier. of: as of corpus_in_subwords. options: of from_pretrained.
    Raises:
        ImportError: transformers is not installed. OSError: there is no such model.
        ValueError: the model has other classes than the corpus, or is none that can be measured.
    """
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise ImportError("a Hugging Face model needs the package transformers: pip install transformers") from error
    with without_bars(import_module("transformers.utils.logging")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        classifier = transformers.AutoModelForSequenceClassification.from_pretrained(source, **options)
    model = HuggingFaceClassifier(classifier, tokenizer, attention, order_of(classifier.config, corpus.classes))
    longest = min(tokenizer.model_max_length, model.longest or tokenizer.model_max_length) - 2
    return model, corpus_in_subwords(corpus, tokenizer, longest, of)


@contextmanager
def without_bars(logs) -> Iterator[None]:
    """No progress bars of transformers, nor warnings that a notebook cannot draw them."""
    shown = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        if shown:
            logs.enable_progress_bar()


def order_of(config, classes: Sequence[str]) -> list[int]:
    """Which of a model's outputs is each class: by name where the names are the same, else in the model's order.

    Raises:
        ValueError: not as many outputs as classes.
    """
    names = [str(config.id2label[k]).casefold() for k in range(config.num_labels)]
    if len(names) != len(classes):
        raise ValueError(f"the model tells {len(names)} classes apart, {', '.join(names)}; the corpus {len(classes)}")
    wanted = [name.casefold() for name in classes]
    return [names.index(name) for name in wanted] if sorted(names) == sorted(wanted) else list(range(len(names)))


def one_of(heads: Sequence[tuple[int, int]], head: tuple[int, int]) -> tuple[int, int]:
    """A head as (layer, head) from 0; ValueError where there is none."""
    layers, each = (size + 1 for size in heads[-1])
    found = tuple(part + size if part < 0 else part for part, size in zip(head, (layers, each), strict=True))
    if found not in heads:
        raise ValueError(
            f"there is no head {tuple(head)}; the model has {layers} layers of {each}, counted from (0, 0)"
        )
    return found


def refuse_other_tasks(classifier: nn.Module) -> None:
    """Raises ValueError where a model does not tell one class of several for a text."""
    config, kind = getattr(classifier, "config", None), type(classifier).__name__
    if getattr(config, "num_labels", None) is None or "ForSequenceClassification" not in kind:
        raise ValueError(f"a {kind} is no sequence classifier of transformers, such as BertForSequenceClassification")
    if config.num_labels < 2:
        raise ValueError(
            f"the {kind} has one output, which is a regression in transformers; it needs two classes or more"
        )
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise ValueError(f"the {kind} gives a text several labels at once; it needs one class for each text")


def refuse_pairs(batch: Batch) -> None:
    if getattr(batch, "query", None) is not None:
        raise ValueError("a Hugging Face classifier is measured on single texts, and these have a query; leave it out")
