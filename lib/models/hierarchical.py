"""The hierarchical attention network: words are attended into sentences, sentences into the text.

Yang et al. (2016); Serrano & Smith (2019), section 3 and appendix A.1. Its final attention is over sentences, so in its
ModelOutput `token` means sentence; `embeddings` are those of the words.
"""

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.models.attention import ATTENTIONS
from lib.models.classifier import AttentionClassifier, pick
from lib.models.encoders import HIERARCHICAL
from lib.models.interface import ModelOutput
from lib.numerics import by_length
from lib.projections import softmax

WORDS = 2**12  # of the sentences that are encoded at once, padding included


class HierarchicalClassifier(AttentionClassifier):
    """Words -> encoder -> attention -> sentences -> encoder -> attention -> linear.

    `encoder`, `attention`, `projection` and `decoder` are those of the sentences, as of any classifier here;
    `word_encoder` and `word_attention` stand below.

    Args:
        sentence_dropout: of the word embeddings. The others are AttentionClassifier's; `document_dropout` is of the
            sentences.
    """

    encoders = HIERARCHICAL

    def __init__(
        self,
        vectors: Tensor,
        encoder: str = "han-rnn",
        attention: str = "additive",
        sentence_dropout: float = 0.0,
        attention_share: float = 0.5,
        **options,
    ):
        of_encoder = {name: options[name] for name in ("hidden_size", "layers") if name in options}
        word_encoder = pick(HIERARCHICAL, encoder, "encoder")(vectors.shape[1], **of_encoder)
        super().__init__(
            vectors,
            encoder,
            attention,
            encoded_size=word_encoder.hidden_size,
            attention_share=attention_share,
            **options,
        )
        self.word_encoder = word_encoder
        share = {"share": attention_share} if attention == "additive" else {}
        self.word_attention = pick(ATTENTIONS, attention, "attention")(word_encoder.hidden_size, **share)
        self.word_dropout = nn.Dropout(sentence_dropout)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        if batch.sentence is None:
            raise ValueError(
                "this model reads sentences, and the batch has none; take texts that are cut into sentences"
            )
        if torch.is_grad_enabled() and not embeddings.requires_grad:
            embeddings.requires_grad_()
        row, place, lengths = sentences_of(batch)
        pieces = list(by_length(lengths, WORDS))  # one long sentence would have all of them padded to its length
        read = [self._sentences(embeddings, row[some], place[some], lengths[some]) for some in pieces]
        vectors = torch.cat(read)[torch.cat(pieces).argsort()]
        counts = torch.bincount(row, minlength=len(batch))
        mask = torch.arange(int(counts.max()), device=row.device) < counts[:, None]
        sentences = vectors.new_zeros(*mask.shape, vectors.shape[1])
        sentences[mask] = vectors
        hidden = self.encoder(self.dropout(sentences), counts)
        return self.from_hidden(hidden, embeddings, mask, attention)

    def _sentences(self, embeddings: Tensor, row: Tensor, place: Tensor, lengths: Tensor) -> Tensor:
        """The vectors of some sentences, (sentence, hidden); the arguments are those of `sentences_of`."""
        place = place[:, : int(lengths.max())]
        states = self.word_encoder(self.word_dropout(embeddings[row[:, None], place.clamp(min=0)]), lengths)
        weights = softmax(self.word_attention(states), place >= 0)
        return (weights[:, None] @ states).squeeze(1)


def sentences_of(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """The sentences of a batch, text by text.

    Returns:
        row (sentence,), the text of each; place (sentence, word), where its words stand in the text, -1 beyond its end;
        lengths (sentence,).
    """
    row, place = batch.mask.nonzero(as_tuple=True)
    number = row * int(batch.sentence.max() + 1) + batch.sentence[row, place]
    _, own, lengths = number.unique_consecutive(return_inverse=True, return_counts=True)
    starts = lengths.cumsum(0) - lengths
    within = torch.arange(len(own), device=own.device) - starts[own]
    places = torch.full((len(lengths), int(lengths.max())), -1, device=own.device)
    places[own, within] = place
    return row[starts], places, lengths
