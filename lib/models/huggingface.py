"""A Hugging Face classifier with the interface: its attention is a layer's, or one head's, at what is read out.

BERT and its like read out the state of their first word, others the mean of all. The weights at these are a mechanism:
they can be replaced, those of all heads of a layer together, or those of one.

A recorder goes down to every layer as the option `recorder` of the forward pass; our attention function, registered
with transformers (in DeBERTa, hooks), hands it the scores, weights and values of each layer, and goes on with what it
returns.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import END, START, UNKNOWN, Corpus, Vocabulary
from lib.datasets.files import as_path
from lib.datasets.pretrained import classifier_of, expose, folder_of, library, read, words_read
from lib.datasets.subwords import corpus_in_subwords, vocabulary_of
from lib.models.check_interface import made_single
from lib.models.evaluation import eval_mode, gradients_enabled
from lib.models.interface import ModelOutput, require_gradient
from lib.numerics import rows_of
from lib.projections import softmax

Place = int | tuple[int, int]  # a layer, or (layer, head)
NUMBER = re.compile(r"^(?:label_?)?([-+]?\d+)(?:\.0*)?$")  # of a class, as in LABEL_0 and 0.0
WORDS = 2**11  # positions of one forward pass: every layer of a large model keeps much for each


@dataclass(frozen=True)
class Output(ModelOutput):
    """With what a Recorder has, what the `first` attends to as (batch, layer, head, 1, size)."""

    first: Tensor | None = None
    logs: Tensor | None = None
    ratio: Tensor | None = None
    values: Tensor | None = None
    layout: "Layout | None" = None


@dataclass(frozen=True)
class Layout:
    """Where the subwords of a batch's words lie in what the classifier reads."""

    place: Tensor  # (batch, word, subword) the position of each, and behind the last position where a word has none
    inside: Tensor  # (batch, position) True between start and end
    second: Tensor | None = None  # (batch, position) of a pair of texts: 1 behind the first separator, else 0

    def pack(self, of_words: Tensor) -> Tensor:
        """(batch, word), of each subword, or (batch, word, subword x size) -> (batch, position), or (.., size)."""
        one_each, place = of_words.dim() == 2, self.place
        each = of_words[:, :, None].expand_as(place) if one_each else of_words.unflatten(2, (place.shape[2], -1))
        row = torch.arange(len(place), device=place.device)[:, None, None].expand_as(place)
        empty = each.new_zeros(len(place), self.inside.shape[1] + 1, *each.shape[3:])
        return empty.index_put((row, place), each)[:, :-1]

    def unpack(self, values: Tensor, empty: float = 0) -> Tensor:
        """(batch, position, ...) -> (batch, word, subword, ...), `empty` where a word has none."""
        values = torch.cat([values, torch.full_like(values[:, :1], empty)], dim=1)
        return values[torch.arange(len(values), device=values.device)[:, None, None], self.place]


class HuggingFaceClassifier(nn.Module):
    """A sequence classifier of transformers that reads out its first word, or all, with the interface of a model.

    Its attention is the mean over the heads of a layer of the first word's weights, over the words of the text; if the
    mean of all states is read out, also the mean over all words' weights. Another attention that is imposed multiplies
    each of these rows of weights by its ratio to this mean; each row's weights of start and end, and the sum of those
    of the words, stay what they are. Of one row it replaces the weights.

    A word may have several subwords: its attention is their sum, which an imposed one shares out as they had it, its
    embedding all of theirs, and so its `hidden`, the values (batch, word, subword x head x size) that the heads weigh.

    Args:
        classifier: as AutoModelForSequenceClassification makes it. From now on it computes its attention by our
            function, which gives the same.
        tokenizer: its own. Batches must be of a corpus in its subwords (`corpus_in_subwords`); see `read_words`.
        attention: a layer, or (layer, head), each from 0, or from the end with -1.
    Raises:
        ValueError: the model is no classifier, reads out other words, or does not expose its attention.
    """

    def __init__(self, classifier: nn.Module, tokenizer, attention: Place = -1):
        super().__init__()
        config, kind = getattr(classifier, "config", None), type(classifier).__name__
        labels, problem = getattr(config, "num_labels", 0), getattr(config, "problem_type", None)
        if "ForSequenceClassification" not in kind or labels < 2 or problem == "multi_label_classification":
            seen = f"a {kind} of {labels} labels{f', {problem},' if problem else ''}"
            raise ValueError(f"{seen} does not give a text one of several classes; allowed: a model that does")
        self.register_buffer("pieces", None, persistent=False)
        self.register_buffer("joins", None, persistent=False)
        self.mask_id = getattr(tokenizer, "mask_token_id", None)
        typed = getattr(config, "type_vocab_size", 1) > 1 and "token_type_ids" in tokenizer.model_input_names
        self.separator = tokenizer.sep_token if typed else None
        self.read_words(vocabulary_of(tokenizer))
        self.order = list(range(labels))  # the number of the output for each class of the corpus
        library()
        self.classifier = classifier
        expose(classifier)
        self.to(next(classifier.parameters()).device)
        probe = self._embed(torch.tensor([[START, UNKNOWN, UNKNOWN, UNKNOWN, END]], device=self.pieces.device))
        self.sizes, self.reads_first = layers_and_heads(classifier, probe)
        layers, heads = self.sizes
        layer, head = attention if isinstance(attention, tuple) else (attention, 0)
        if not (-layers <= layer < layers and -heads <= head < heads):
            seen = f"there is no attention {attention!r}; the model has {layers} layers of {heads} heads"
            raise ValueError(f"{seen}, from 0: name a layer, or (layer, head)")
        layer, one = layer % layers, isinstance(attention, tuple)
        chosen = slice(head % heads, head % heads + 1) if one else slice(0, heads)
        self.place = layer, chosen, slice(0, 1 if self.reads_first else None)
        of = "the last layer" if layer == layers - 1 else f"layer {layer + 1}"
        apart = self.reads_first and not getattr(config, "conv_kernel_size", 0)  # of DeBERTa's convolution
        self.first_alone = layer == layers - 1 and apart  # logits of another attention are by a pass of that word
        self.attention_name = f"head {chosen.stop} of {of}" if one else f"mean of {of}'s heads"

    def read_words(self, vocabulary: Vocabulary) -> None:
        """From now on batches are of a corpus with this vocabulary; the unknown word is read as [MASK]."""
        pieces = torch.tensor([*zip_longest(*vocabulary.pieces, fillvalue=-1)]).T  # of each word, then -1
        pieces[UNKNOWN, 0] = pieces[UNKNOWN, 0] if self.mask_id is None else self.mask_id
        self.vocabulary, self.pieces = vocabulary, pieces.to(getattr(self.pieces, "device", None))
        self.joins = torch.tensor([word == self.separator for word in vocabulary.words], device=self.pieces.device)
        self.words_at_once = WORDS * len(pieces) // int((pieces >= 0).sum())

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return self.from_embeddings(self._embed(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output with `embeddings` (batch, word, subword x size), without positions, in place of the tokens'."""
        if batch.query is not None:
            raise ValueError("a Hugging Face classifier reads single texts here, and these have questions")
        require_gradient(embeddings)
        layout = self._layout(batch)
        recorder = Recorder(self.place, layout, attention)
        logits = self.logits(layout.pack(embeddings), layout.inside, recorder, layout.second)
        attention = softmax(recorder.scores, batch.mask) if attention is None else attention
        about = {name: getattr(recorder, name) for name in ("logs", "ratio", "values", "layout")}
        about["first"] = torch.stack(recorder.first, dim=1)
        return Output(logits, recorder.scores, attention, batch.mask, recorder.hidden, embeddings, **about)

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, word) or (batch, draw, word) -> the same with class for word.

        A forward pass for each draw; where the first word is read out, mostly of it alone, in the last layer.
        """
        draws = attention if attention.dim() == 3 else attention[:, None]
        texts, number, _ = draws.shape
        row = torch.arange(texts, device=draws.device).repeat_interleave(number)
        size, logits = max(1, WORDS // output.layout.inside.shape[1]), []
        if self.first_alone:  # of one subword
            embeddings = output.embeddings[:, :1].chunk(output.layout.place.shape[2], dim=2)[0]
        else:
            embeddings = output.layout.pack(output.embeddings)
        output = replace(output, hidden=output.hidden[:, :0], embeddings=embeddings)  # what each draw needs
        for rows, given in zip(row.split(size), draws.flatten(0, 1).split(size), strict=True):
            part = rows_of(output, rows)
            recorder = Recorder(self.place, layout := part.layout, given)
            recorder.logs, recorder.ratio, recorder.values = part.logs, part.ratio, part.values
            if self.first_alone:
                recorder.given = [*part.first[:, :-1].unbind(1), recorder.weigh(part.first[:, -1])]
            inside = layout.inside[:, : embeddings.shape[1]]
            logits.append(self.logits(part.embeddings, inside, recorder, layout.second))
        return torch.cat(logits).view(*attention.shape[:-1], -1)

    def token_logits(self, output: ModelOutput) -> None:
        """None: what follows the attention is not affine."""

    def read_from(self, inside: Tensor) -> Tensor:
        """(batch, position): how much of each last state is read out: all of the first one, or the mean of all."""
        read = with_ends(inside).double()
        if self.reads_first:
            read[:, 1:] = 0
        return read / read.sum(dim=1, keepdim=True)

    def without_text(self, batch: Batch) -> Tensor:
        """Logits (batch, class) of start and end alone: the same for every text."""
        empty = self._embed(batch.tokens.new_tensor([[START, END]]))
        return self.logits(empty, torch.zeros_like(empty[:, :, 0], dtype=torch.bool)).expand(len(batch), -1)

    def logits(self, embeddings: Tensor, inside: Tensor, recorder=None, second: Tensor | None = None) -> Tensor:
        """(batch, class) of embeddings (batch, position, embedding); `inside` and `second` are those of a Layout."""
        given = {} if second is None else {"token_type_ids": second[:, : inside.shape[1]]}
        given |= {"inputs_embeds": embeddings, "attention_mask": with_ends(inside).long()}
        return self.classifier(recorder=recorder, **given).logits[:, self.order]

    def _ids(self, tokens: Tensor) -> Tensor:
        """(batch, word, subword) ids of tokens (batch, word), -1 where a word has no more."""
        ids = self.pieces[tokens]
        return ids[:, :, : int((ids >= 0).sum(dim=2).max())]

    def _embed(self, tokens: Tensor) -> Tensor:
        """(batch, word, subword x embedding) of tokens (batch, word), without positions; 0 where there is none."""
        ids, table = self._ids(tokens), self.classifier.get_input_embeddings()
        return table(ids.clamp(min=0)).masked_fill((ids < 0)[..., None], 0).flatten(2)

    def _layout(self, batch: Batch) -> Layout:
        ids = self._ids(batch.tokens)
        there = (ids >= 0).flatten(1)
        positions = int(there.sum(dim=1).max())
        place = (there.cumsum(dim=1) - 1).masked_fill(~there, positions).view_as(ids)
        layout = Layout(place, there.new_zeros(len(place), positions))
        layout = replace(layout, inside=layout.pack(batch.mask))
        if self.separator is None:
            return layout
        between = batch.mask & self.joins[batch.tokens]
        return replace(layout, second=layout.pack((between.cumsum(dim=1) > between).long()))


def with_ends(inside: Tensor) -> Tensor:
    """(batch, position): those inside, which are between start and end, and these two."""
    return torch.arange(inside.shape[1], device=inside.device) < inside.sum(dim=1, keepdim=True) + 2


def pretrained(
    source: str | Path, corpus: Corpus, attention: Place = -1, whole: bool = True
) -> tuple[HuggingFaceClassifier, Corpus]:
    """A classifier with the interface, and the corpus in the words that it reads, with notes on how both are read.

    Args:
        source: a folder with model and tokenizer, from here or in a home of data; nothing is downloaded.
        attention: of HuggingFaceClassifier.
        whole: the subwords of a word are one token; else each is.
    Raises:
        ValueError: the folder, or the model in it, cannot be measured on this corpus, in one sentence.
    """
    here = as_path(source).resolve()
    folder = folder_of(str(here if here.is_dir() else source))
    tokenizer, classifier = read("AutoTokenizer", folder), classifier_of(folder)
    halves = made_single(classifier)
    if len(tokenizer) > (rows := classifier.get_input_embeddings().num_embeddings):
        raise ValueError(f"the tokenizer has {len(tokenizer):,} subwords, the model embeddings of {rows:,} alone")
    model = HuggingFaceClassifier(classifier, tokenizer, attention)
    model.order, by_order = order_of(classifier.config, corpus.classes)
    most = min(tokenizer.model_max_length, words_read(classifier)) - 2
    made = corpus_in_subwords(replace(corpus, subwords=folder, notes=()), tokenizer, most, whole)
    model.read_words(made.vocabulary)
    about = f"The model is {folder.name}, a {type(classifier).__name__}. Its attention: {model.attention_name}, "
    where = "at the classifying token" if model.reads_first else "averaged over all tokens, whose mean is read out"
    notes = [f"{about}{where}, over the words between start and end.", *by_order, *halves]
    return model, replace(made, notes=(*corpus.notes, *notes, *made.notes))


def order_of(config, classes: Sequence[str]) -> tuple[list[int], list[str]]:
    """The number of the model's output for each class, and a note where it is not by their names, but their order.

    Names agree whatever their case and blanks, and as numbers, as LABEL_0 and 0.0; other numbers count by their order.
    """
    own = [str(config.id2label[k]) for k in range(config.num_labels)]
    names, wanted = (["".join(name.casefold().split()).strip("'\"") for name in of] for of in (own, classes))
    names, wanted = ([NUMBER.sub(r"\1", name) for name in of] for of in (names, wanted))
    if sorted(names) == sorted(wanted) and len(set(names)) == len(names):
        return [names.index(name) for name in wanted], []
    numbers = [all(map(NUMBER.match, of)) for of in (names, wanted)]
    if len(own) != len(classes) or not any(numbers) or (set(names) & set(wanted) and not all(numbers)):
        seen = f"the model's {len(own)} classes are {', '.join(own)}, the texts' {len(classes)} {', '.join(classes)}"
        raise ValueError(f"{seen}; allowed: the same names (id2label in config.json), or numbers, as in LABEL_0")
    taken = f"{', '.join(own)} are taken as {', '.join(classes)}"
    return list(range(len(own))), [f"The model's classes {taken}, by their order."]


# --- which models can be measured


def layers_and_heads(classifier: nn.Module, probe: Tensor) -> tuple[tuple[int, int], bool]:
    """(layers, heads of each) of a model, and whether it reads out its first word, by its pass of (1, word, embedding).

    ValueError: attention is not exposed, or what is read out is neither the first word's state nor the mean of all.
    """
    kind, words = type(classifier).__name__, probe.shape[1]
    everywhere, layers = torch.ones_like(probe[:, :, 0], dtype=torch.long), []
    with eval_mode(classifier), gradients_enabled(classifier):
        given = {"inputs_embeds": probe.detach().requires_grad_(), "attention_mask": everywhere}
        try:
            output = classifier(**given, recorder=layers, output_hidden_states=True)
        except (TypeError, NotImplementedError) as error:
            raise ValueError(f"a {kind} does not take embeddings, or does not expose its attention: {error}") from error
        if not layers or any(weights.shape[2:] != (words, words) for weights in layers):
            raise ValueError(f"a {kind} does not expose its attention through transformers' AttentionInterface")
        (gradient,) = torch.autograd.grad(output.logits.square().sum(), output.hidden_states[-1], allow_unused=True)
    read = [] if gradient is None else gradient[0].any(dim=-1).nonzero().flatten().tolist()
    if read != [0] and not (len(read) == words and torch.allclose(gradient, gradient[:, :1], rtol=1e-4)):
        seen = f"a {kind} has no classifying token in front: of {words} words it reads out the states of {read}, from 0"
        raise ValueError(f"{seen}; allowed: word 0 alone, as BERT, RoBERTa or DistilBERT, or the mean of all words")
    return (len(layers), layers[0].shape[1]), read == [0]


# --- recording and replacing attention during a forward pass


class Recorder:
    """Records the attention of the first word, or of all, in some heads of a layer, and replaces it.

    After the forward pass it has, of the place (layer, heads, words), `logs` (batch, row, position) of the weights, a
    row for each head and position there, and their `ratio` to all rows' sum for that word; `scores` (batch, word),
    whose softmax over the mask is the rows' mean; `values` (batch, position, head x size), and `hidden`, these by word;
    of each layer the output for the `first` position, (batch, head, 1, size). Those that are `given` are taken.
    """

    def __init__(self, place: tuple, layout: Layout, attention: Tensor | None = None):
        self.layer, self.heads, self.words = place
        self.layout, self.attention, self.values = layout, attention, None
        self.first, self.given = [], []

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """The output of the heads of the next layer, (batch, head, position, size)."""
        if self.given:
            return self.given.pop(0)
        attended, heads, words = weights @ values, self.heads, self.words
        if len(self.first) == self.layer:
            least = torch.finfo(scores.dtype).min
            logs = scores[:, heads, words].clamp(min=least).log_softmax(dim=-1)
            logs = logs.masked_fill(~with_ends(self.layout.inside)[:, None, words, None], -torch.inf)  # of padding
            self.logs = logs.flatten(1, 2)
            self.scores = self.layout.unpack(self.logs.logsumexp(1), -torch.inf).logsumexp(2).clamp(min=least)
            self.ratio = self.logs - self.layout.pack(self.scores)[:, None]
            if self.values is None:
                self.hidden = self.layout.unpack(values[:, heads].transpose(1, 2).flatten(2)).flatten(2)
                self.values = self.layout.pack(self.hidden)
            own = self.weigh(attended[:, :, words])
            attended = torch.cat([own, attended[:, :, own.shape[2] :]], dim=2)
        self.first.append(attended[:, :, :1])
        return attended

    def weigh(self, others: Tensor) -> Tensor:
        """(batch, head, position, size): what those of the place attend to, with that of other heads as in `others`."""
        imposed = self.attention is not None
        rows = reweighted(self.logs, self.ratio, self.layout, self.attention) if imposed else self.logs.exp()
        values = self.values.unflatten(2, (self.heads.stop - self.heads.start, -1))
        own = rows.unflatten(1, (-1, others.shape[2])) @ values.transpose(1, 2)
        return torch.cat([others[:, : self.heads.start], own, others[:, self.heads.stop :]], dim=1)


def reweighted(logs: Tensor, ratio: Tensor, layout: Layout, attention: Tensor) -> Tensor:
    """(batch, row, position): weights, of logarithms `logs`, times how much an attention (batch, word) is of the mean.

    Each row keeps the sum of its weights inside, times that of the attention, and all outside. `ratio` is a Recorder's.
    """
    weights, given = logs.exp(), layout.pack(attention)[:, None]
    with torch.no_grad():  # the largest that counts is 1: a head that nearly ignores these words has a sum too
        largest = ratio.masked_fill(given <= 0, -torch.inf).amax(dim=-1, keepdim=True).nan_to_num(neginf=0)
    products = (ratio - largest).clamp(max=30).exp() * given
    total = products.sum(dim=-1, keepdim=True)
    shares = products / total.masked_fill(total == 0, 1) * attention.sum(dim=1)[:, None, None]
    words = weights.masked_fill(~layout.inside[:, None], 0).sum(dim=-1, keepdim=True)
    return weights.masked_fill(layout.inside[:, None], 0) + words * shares
