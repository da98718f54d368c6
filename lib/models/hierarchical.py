"""The hierarchical attention network: attention over the words of each sentence, then over the sentences.

Yang et al. (2016); Serrano & Smith (2019), section 3 and appendix A.1. In its ModelOutput `token` means sentence;
`embeddings` are those of the words.
"""

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.models.attention import ATTENTIONS
from lib.models.classifier import AttentionClassifier, require_gradient
from lib.models.encoders import HIERARCHICAL, registered
from lib.models.interface import ModelOutput
from lib.numerics import by_length
from lib.projections import softmax

WORDS = 2**12  # of the sentences that are encoded at once, padding included


class HierarchicalClassifier(AttentionClassifier):
    """Words -> encoder -> attention -> sentences -> encoder -> attention -> linear layer.

    `encoder`, `attention`, `projection` and `decoder` are those of the sentences, as in AttentionClassifier;
    `word_encoder` and `word_attention` are those of the words of a sentence.

    Args:
        sentence_dropout: dropout of the word embeddings.
        options: of AttentionClassifier; `document_dropout` is that of the sentences.
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
        encoder_options = {name: options[name] for name in ("hidden_size", "layers") if name in options}
        word_encoder = registered(HIERARCHICAL, encoder, "encoder")(vectors.shape[1], **encoder_options)
        options |= {"encoded_size": word_encoder.hidden_size, "attention_share": attention_share}
        super().__init__(vectors, encoder, attention, **options)
        self.word_encoder = word_encoder
        share = {"share": attention_share} if attention == "additive" else {}
        self.word_attention = registered(ATTENTIONS, attention, "attention")(word_encoder.hidden_size, **share)
        self.word_dropout = nn.Dropout(sentence_dropout)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for `embeddings` (batch, word, embedding) in place of those of the batch's tokens.

        Args:
            attention: (batch, sentence), where given, replaces the model's own.
        Raises:
            ValueError: the batch has no sentences.
        """
        if batch.sentence is None:
            raise ValueError(
                "this model reads sentences, and the batch has none; use texts that are cut into sentences"
            )
        require_gradient(embeddings)
        row, place, lengths = sentences_of(batch)
        chunks = list(by_length(lengths, WORDS))  # not at once: all would be padded to the longest sentence
        encoded = [self._encode_sentences(embeddings, row[some], place[some], lengths[some]) for some in chunks]
        vectors = torch.cat(encoded)[torch.cat(chunks).argsort()]
        counts = torch.bincount(row, minlength=len(batch))
        mask = torch.arange(int(counts.max()), device=row.device) < counts[:, None]
        sentences = vectors.new_zeros(*mask.shape, vectors.shape[1])
        sentences[mask] = vectors
        hidden = self.encoder(self.dropout(sentences), counts)
        return self.from_hidden(hidden, embeddings, mask, attention)

    def _encode_sentences(self, embeddings: Tensor, row: Tensor, place: Tensor, lengths: Tensor) -> Tensor:
        """(sentence, hidden), of sentences as `sentences_of` returns them."""
        place = place[:, : int(lengths.max())]
        states = self.word_encoder(self.word_dropout(embeddings[row[:, None], place.clamp(min=0)]), lengths)
        weights = softmax(self.word_attention(states), place >= 0)
        return (weights[:, None] @ states).squeeze(1)


def sentences_of(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """The sentences of a batch, text by text.

    Returns:
        row (sentence,), the text of each; place (sentence, word), the positions of its words in the text, -1 beyond its
        end; lengths (sentence,).
    """
    row, place = batch.mask.nonzero(as_tuple=True)
    number = row * int(batch.sentence.max() + 1) + batch.sentence[row, place]
    _, sentence, lengths = number.unique_consecutive(return_inverse=True, return_counts=True)
    starts = lengths.cumsum(0) - lengths
    within = torch.arange(len(sentence), device=sentence.device) - starts[sentence]
    places = torch.full((len(lengths), int(lengths.max())), -1, device=sentence.device)
    places[sentence, within] = place
    return row[starts], places, lengths
