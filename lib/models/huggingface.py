"""A Hugging Face classifier with the interface: its attention is one head's row of the classifying token.

BERT and its like read out the state of their first word. The weights of one head at that word are a mechanism: they can
be replaced. An average over heads, or rollout, is an explanation: `lib.importance.inner_attention` measures it.
Needs the package transformers, which nothing else in lib needs.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import END, SPECIALS, START, Corpus, Instance, Split, Vocabulary, checksum
from lib.models.huggingface_hooks import AttentionRecorder, HeadPatch, RecordedClassifier, head_output, with_ends
from lib.models.interface import ModelOutput, require_gradient
from lib.models.transformer import Imposed
from lib.projections import softmax

WORDS = 2**11  # of one forward pass: every layer of a large model keeps much for each word
ROWS = 2**12  # classifying tokens of one read-out


@dataclass(frozen=True)
class HeadOutput(ModelOutput):
    """A ModelOutput whose attention is one head's row of the classifying token.

    scores  (batch, word) of that row, start and end included
    hidden  (batch, word, size) the values that the head weighs
    heads   (batch, head, size) the output of every head of the layer at the classifying token
    state   (batch, hidden) that token's state before the last layer; None where the head is of an earlier layer, or the
            last one cannot run by itself
    """

    heads: Tensor | None = None
    state: Tensor | None = None


class HuggingFaceClassifier(nn.Module):
    """A sequence classifier of transformers that reads out its first word, with the interface of a model.

    `heads` lists every (layer, head) of it.

    Args:
        classifier: as AutoModelForSequenceClassification makes it. It is not changed; its parameters are shared.
        tokenizer: its own. Batches must be of a corpus in its subwords (`corpus_in_subwords`).
        attention: (layer, head), each from 0, or from the end with -1.
        order: the number of the model's output for each class of the corpus; None: they are in the same order.
    Raises:
        ImportError: transformers is not installed.
        ValueError: the model is no classifier, reads out more than its first word, or does not expose its attention.
    """

    reads_first = True
    words_at_once = WORDS

    def __init__(
        self, classifier: nn.Module, tokenizer, attention: tuple[int, int] = (-1, 0), order: Sequence[int] | None = None
    ):
        super().__init__()
        refuse_other_tasks(classifier)
        self.vocabulary = vocabulary_of(tokenizer)
        self.register_buffer("ids", torch.tensor(ids_of(tokenizer)), persistent=False)
        self.order = list(range(classifier.config.num_labels) if order is None else order)
        self.longest = getattr(classifier.config, "max_position_embeddings", None)
        self.recorded = RecordedClassifier(classifier)
        self.to(next(classifier.parameters()).device)
        sizes = self.recorded.layers, self.recorded.heads
        self.heads = list(product(*map(range, sizes)))
        if len(attention) != 2 or isinstance(attention, str):
            raise ValueError(f"attention is {attention!r}; allowed: one head, (layer, head)")
        self.head = tuple(part + size if part < 0 else part for part, size in zip(attention, sizes, strict=True))
        if self.head not in self.heads:
            raise ValueError(
                f"there is no head {attention}; the model has {sizes[0]} layers of {sizes[1]}, from (0, 0)"
            )

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for a batch; `attention` (batch, word), where given, replaces the head's own."""
        return self.from_embeddings(self._embed(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same, with `embeddings` (batch, word, embedding), without positions, in place of those of the tokens."""
        return self._output(embeddings, batch, attention)

    def read_out(self, output: HeadOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, word) or (batch, draw, word) -> the same with class for word.

        Start and end keep their weight; the attention distributes the rest. For a head of the last layer only that
        layer is computed again, for the first word alone; for others the whole model.
        """
        draws = attention if attention.dim() == 3 else attention[:, None]
        outputs = head_output(output.scores, output.hidden, output.mask, draws)
        row = torch.arange(len(outputs), device=outputs.device).repeat_interleave(outputs.shape[1])
        size = ROWS if output.state is not None else max(1, WORDS // output.mask.shape[1])
        parts = zip(row.split(size), outputs.flatten(0, 1).split(size), strict=True)
        logits = torch.cat([self._with_head_output(output, *part) for part in parts]).view(*outputs.shape[:2], -1)
        return logits if attention.dim() == 3 else logits[:, 0]

    def token_logits(self, output: ModelOutput) -> None:
        """None: the layers after the head are not affine."""

    def projection(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Softmax of the scores over the text's own subwords."""
        return softmax(scores, mask)

    def without_text(self, batch: Batch) -> Tensor:
        """Logits (batch, class) of start and end alone: the same for every text."""
        empty = self._embed(batch.tokens.new_tensor([[START, END]]))
        logits = self.recorded(empty, torch.ones_like(empty[:, :, 0], dtype=torch.bool), AttentionRecorder())
        return logits[:, self.order].expand(len(batch), -1)

    def inner_attention(self, batch: Batch) -> Tensor:
        """The attention of all layers, (batch, layer, head, word, word): rows sum to 1 over the text's words."""
        return self._inner_attention(self._embed(batch.tokens), batch)

    def with_inner_attention(self, batch: Batch, imposed: Imposed) -> ModelOutput:
        """The output with the weights of some heads replaced: (layer, head) -> weights (batch, word, word)."""
        return self._output(self._embed(batch.tokens), batch, imposed=imposed)

    def _inner_attention(self, embeddings: Tensor, batch: Batch) -> Tensor:
        recorder = AttentionRecorder()
        self.recorded(embeddings, with_ends(batch.mask), recorder)
        return torch.stack(recorder.weights, dim=1)

    def _output(
        self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None, imposed: Imposed | None = None
    ) -> HeadOutput:
        if batch.query is not None:
            raise ValueError("a Hugging Face classifier reads single texts, and these have a query; leave it out")
        require_gradient(embeddings)
        patch = HeadPatch(self.head, batch.mask, attention, imposed=imposed)
        logits = self.recorded(embeddings, with_ends(batch.mask), patch)[:, self.order]
        attention = softmax(patch.scores, batch.mask) if attention is None else attention
        in_last = self.recorded.last_layer is not None and self.head[0] == self.recorded.layers - 1
        fields = patch.scores, attention, batch.mask, patch.values, embeddings
        return HeadOutput(logits, *fields, heads=patch.heads, state=patch.state if in_last else None)

    def _embed(self, tokens: Tensor) -> Tensor:
        """(batch, word, embedding) of tokens (batch, word), without positions."""
        if self.longest and tokens.shape[1] > self.longest:
            raise ValueError(
                f"a text has {tokens.shape[1]} subwords, start and end included; the model reads {self.longest}"
            )
        if tokens.numel() and int(tokens.max()) >= len(self.ids):
            raise ValueError("the batch does not hold subwords of this model's tokenizer; use corpus_in_subwords")
        return self.recorded.whole.get_input_embeddings()(self.ids[tokens])

    def _with_head_output(self, output: HeadOutput, row: Tensor, outputs: Tensor) -> Tensor:
        """Logits (case, class) of the texts `row` (case,) with `outputs` (case, size) in place of the head's."""
        if output.state is None:
            patch = HeadPatch(self.head, output.mask[row], output=outputs)
            return self.recorded(output.embeddings[row], with_ends(output.mask)[row], patch)[:, self.order]
        own = torch.arange(output.heads.shape[1], device=outputs.device) == self.head[1]
        heads = torch.where(own[:, None], outputs[:, None], output.heads[row])
        return self.recorded.from_heads(output.state[row], heads)[:, self.order]


def pretrained(
    source: str | Path, corpus: Corpus, attention: tuple[int, int] = (-1, 0), **options
) -> tuple[HuggingFaceClassifier, Corpus]:
    """A classifier with the interface, and the corpus in the subwords that it reads.

    Args:
        source: a folder with model and tokenizer, or a name on the hub, from which it is downloaded.
        attention: of HuggingFaceClassifier. options: of from_pretrained.
    Raises:
        ImportError: transformers is not installed. OSError: there is no such model.
        ValueError: the model has other classes than the corpus, or HuggingFaceClassifier refuses it.
    """
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise ImportError("a Hugging Face model needs the package transformers: pip install transformers") from error
    with without_progress_bars(import_module("transformers.utils.logging")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        classifier = transformers.AutoModelForSequenceClassification.from_pretrained(source, **options)
    model = HuggingFaceClassifier(classifier, tokenizer, attention, order_of(classifier.config, corpus.classes))
    longest = min(tokenizer.model_max_length, model.longest or tokenizer.model_max_length) - 2
    return model, corpus_in_subwords(corpus, tokenizer, longest)


@contextmanager
def without_progress_bars(logging) -> Iterator[None]:
    """No progress bars of transformers, nor warnings that a notebook cannot draw them."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        if shown:
            logging.enable_progress_bar()


def order_of(config, classes: Sequence[str]) -> list[int]:
    """The number of the model's output for each class: by name where the names agree, else in the model's order.

    Raises:
        ValueError: the numbers of outputs and of classes differ.
    """
    names = [str(config.id2label[k]).casefold() for k in range(config.num_labels)]
    if len(names) != len(classes):
        raise ValueError(f"the model has {len(names)} classes, {', '.join(names)}; the corpus {len(classes)}")
    wanted = [name.casefold() for name in classes]
    return [names.index(name) for name in wanted] if sorted(names) == sorted(wanted) else list(range(len(names)))


def refuse_other_tasks(classifier: nn.Module) -> None:
    """Raises ValueError where a model does not classify texts into one of several classes."""
    config, kind = getattr(classifier, "config", None), type(classifier).__name__
    if getattr(config, "num_labels", None) is None or "ForSequenceClassification" not in kind:
        raise ValueError(f"a {kind} is no sequence classifier of transformers, such as BertForSequenceClassification")
    if config.num_labels < 2:
        raise ValueError(f"the {kind} has one output, which is a regression in transformers; it needs two or more")
    if getattr(config, "problem_type", None) == "multi_label_classification":
        raise ValueError(f"the {kind} gives a text several labels at once; it needs one class for each text")


# --- a corpus in the subwords that such a model reads


def vocabulary_of(tokenizer) -> Vocabulary:
    """Padding, unknown, start and end, then every subword of the tokenizer, in its order."""
    subwords = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return Vocabulary(SPECIALS + tuple(f"<unused {k}>" if one is None else one for k, one in enumerate(subwords)))


def ids_of(tokenizer) -> list[int]:
    """The tokenizer's id of each word of `vocabulary_of`, in its order.

    Raises:
        ValueError: the tokenizer does not put its cls token before a text and its sep token after it.
    """
    special = {name: getattr(tokenizer, f"{name}_token_id", None) for name in ("pad", "unk", "cls", "sep")}
    missing = [name for name in ("pad", "cls", "sep") if special[name] is None]
    if missing:
        raise ValueError(f"the tokenizer has no {' and no '.join(missing)} token; it needs pad, cls and sep")
    around = tokenizer("a")["input_ids"]
    if (around[0], around[-1]) != (special["cls"], special["sep"]):
        seen = " ".join(tokenizer.convert_ids_to_tokens(around))
        raise ValueError(f"the tokenizer makes {seen!r} of 'a'; it needs its cls token before and its sep token after")
    special["unk"] = special["pad"] if special["unk"] is None else special["unk"]  # byte-level: nothing is unknown
    return [*special.values(), *range(len(tokenizer))]


def corpus_in_subwords(corpus: Corpus, tokenizer, most: int) -> Corpus:
    """The same texts and splits as they were written, in a tokenizer's subwords, the first `most` of each text."""
    vocabulary, notes, splits = vocabulary_of(tokenizer), [], []
    for split in corpus.splits:
        cut, longer = _in_subwords(split.instances, tokenizer, most)
        kept = tuple(one for one in cut if one.tokens)
        if len(kept) < len(cut):
            notes.append(f"{len(cut) - len(kept):,} texts of {split.name} without a subword were left out.")
        if longer:
            notes.append(f"{longer:,} texts of {split.name} were cut after {most:,} subwords.")
        splits.append(Split(split.name, kept, vocabulary))
    tokens = f"Tokens are the subwords of a tokenizer, {type(tokenizer).__name__}, of the texts as they were written."
    return replace(
        corpus,
        **dict(zip(("train", "dev", "test"), splits, strict=True)),
        vocabulary=vocabulary,
        notes=(*corpus.notes, tokens, *notes),
        checksum=checksum(splits, vocabulary),
    )


def _in_subwords(instances: Sequence[Instance], tokenizer, most: int) -> tuple[list[Instance], int]:
    """The texts in their first `most` subwords, and how many have more."""
    if not instances:
        return [], 0
    cut = tokenizer([one.text for one in instances], add_special_tokens=False, verbose=False)["input_ids"]
    tokens = [tuple(tokenizer.convert_ids_to_tokens(ids[:most])) for ids in cut]
    found = [
        replace(one, tokens=own, rationale=None, sentences=None) for one, own in zip(instances, tokens, strict=True)
    ]
    return found, sum(len(ids) > most for ids in cut)
