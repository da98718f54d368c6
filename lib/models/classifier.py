"""The models that classify texts: embed, encode, attend, read out.

Over words, over words and then sentences, or over the words of a text about which a question is asked.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.models.attention import ATTENTIONS, WITH_QUERY
from lib.models.encoders import QUESTION_ENCODERS, RETENTIONS, encoder_kind
from lib.models.interface import ModelOutput, require_gradient
from lib.numerics import by_length
from lib.projections import projection, softmax

WORDS = 2**12  # of the sentences that are encoded at once, padding included


class AttentionClassifier(nn.Module):
    """logits = decoder(attention @ hidden), linear in the states' weighted average; methods: `lib.models.interface`.

    Args:
        vectors: (word, embedding), the initial embedding table; row 0 is padding.
        outputs: 1 for one sigmoid output (two classes), else the number of classes.
        retention: one of RETENTIONS, how embeddings are kept in the hidden states.
        query_init: of Dot. attention_share: of Additive. frozen: the embedding table is not trained.
        document_dropout: of the encoder's input, of size encoded_size, if not the embeddings'.
        classifier_dropout: of the decoder's input. encoder_options: such as hidden_size.
    """

    def __init__(
        self,
        vectors: Tensor,
        encoder: str = "bilstm",
        attention: str = "additive",
        projection_name: str = "softmax",
        outputs: int = 1,
        retention: str | None = None,
        query_init: str = "default",
        frozen: bool = False,
        attention_share: float = 0.5,
        document_dropout: float = 0.0,
        classifier_dropout: float = 0.0,
        encoded_size: int | None = None,
        **encoder_options,
    ):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors.clone(), freeze=frozen, padding_idx=PAD)
        self.encoder = encoder_kind(encoder)(encoded_size or vectors.shape[1], **encoder_options)
        if retention is not None:
            self.encoder = RETENTIONS[retention](self.encoder, vectors.shape[1])
        attention_options = {"query_init": query_init} if attention == "dot" else {"share": attention_share}
        self.attention = ATTENTIONS[attention](self.encoder.hidden_size, **attention_options)
        self.projection = projection(projection_name)
        self.decoder = nn.Linear(self.encoder.hidden_size, outputs)
        self.dropout, self.last_dropout = nn.Dropout(document_dropout), nn.Dropout(classifier_dropout)

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return self.from_embeddings(self.embedding(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        require_gradient(embeddings)
        hidden = self.encoder(self.dropout(embeddings), batch.lengths) if batch.states is None else batch.states
        query = [self.encode_query(batch)] if hasattr(self, "encode_query") else []
        return self.from_hidden(hidden, embeddings, batch.mask, attention, *query)

    def from_hidden(
        self, hidden: Tensor, embeddings: Tensor, mask: Tensor, attention: Tensor | None, *query: Tensor
    ) -> ModelOutput:
        """The output for the hidden states (batch, token, hidden) of these embeddings, and a query if any."""
        scores = self.attention(hidden, *query)
        if attention is None:
            attention = self.projection(scores, mask)
        return ModelOutput(self.decode(attention, hidden, *query), scores, attention, mask, hidden, embeddings, *query)

    def decode(self, attention: Tensor, hidden: Tensor) -> Tensor:
        """Logits (batch, class) of attention (batch, token) on hidden (batch, token, hidden)."""
        return self.decoder(self.last_dropout((attention.unsqueeze(1) @ hidden).squeeze(1)))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        if attention.dim() == 2:
            return self.decode(attention, output.hidden)
        token_logits, bias = self.token_logits(output)
        return attention @ token_logits + bias

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor]:
        return output.hidden @ self.decoder.weight.T, self.decoder.bias


class GuidedClassifier(AttentionClassifier):
    """Its attention is given with each text, as `batch.guide`, also in training (Wiegreffe & Pinter 2019, 3.4)."""

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The forward pass from embeddings; attention is the given one, else the guide."""
        if attention is None and batch.guide is None:
            raise ValueError("this model is guided, and the batch has no attention: use batches of its own run")
        return super().from_embeddings(embeddings, batch, batch.guide if attention is None else attention)


class Displayed(nn.Module):
    """A model that shows the attention of another: its predictions do not use the weights that its output displays.

    An imposed attention acts on the states and the read-out of `used`; `shown` gives scores and attention alone.
    """

    def __init__(self, used: AttentionClassifier, shown: AttentionClassifier):
        super().__init__()
        self.used, self.shown = used, shown
        self.read_out, self.token_logits = used.read_out, used.token_logits

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output of `used`, with what `shown` attends to where no attention is imposed."""
        return self.from_embeddings(self.used.embedding(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same from the embeddings of `used`; those of `shown` are its own."""
        output = self.used.from_embeddings(embeddings, batch, attention)
        shown = self.shown(batch) if attention is None else output
        return replace(output, scores=shown.scores, attention=shown.attention)


class HierarchicalClassifier(AttentionClassifier):
    """The hierarchical attention network: attention over the words of each sentence, then over the sentences.

    Yang et al. (2016); Serrano & Smith (2019), section 3 and appendix A.1. `word_encoder` and `word_attention` are of
    the words of a sentence, all other parts of the sentences, and so is every `token` of its ModelOutput.
    `sentence_dropout` is of the word embeddings, `document_dropout` of the sentences.
    """

    def __init__(
        self, vectors: Tensor, encoder: str, attention: str = "additive", sentence_dropout: float = 0.0, **options
    ):
        encoder_options = {name: options[name] for name in ("hidden_size", "layers") if name in options}
        word_encoder = encoder_kind(encoder)(vectors.shape[1], **encoder_options)
        super().__init__(vectors, encoder, attention, encoded_size=word_encoder.hidden_size, **options)
        self.word_encoder = word_encoder
        share = {"share": options.get("attention_share", 0.5)} if attention == "additive" else {}
        self.word_attention = ATTENTIONS[attention](word_encoder.hidden_size, **share)
        self.word_dropout = nn.Dropout(sentence_dropout)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for `embeddings` (batch, word, embedding); `attention` is (batch, sentence)."""
        if batch.sentence is None:
            raise ValueError("this model reads sentences, and the batch has none; use texts cut into sentences")
        require_gradient(embeddings)
        row, place = batch.mask.nonzero(as_tuple=True)
        number = row * int(batch.sentence.max() + 1) + batch.sentence[row, place]
        lengths = number.unique_consecutive(return_counts=True)[1]  # (sentence,)
        row = row[lengths.cumsum(0) - lengths]  # (sentence,) the text of each
        place = pad_sequence(place.split(lengths.tolist()), True, -1)  # (sentence, word) in the text, -1 beyond its end
        chunks = list(by_length(lengths, WORDS))  # not at once: all would be padded to the longest sentence
        encoded = [self._encode_sentences(embeddings, row[some], place[some], lengths[some]) for some in chunks]
        vectors = torch.cat(encoded)[torch.cat(chunks).argsort()]
        counts = torch.bincount(row, minlength=len(batch))
        mask = torch.arange(int(counts.max()), device=row.device) < counts[:, None]
        hidden = self.encoder(self.dropout(pad_sequence(vectors.split(counts.tolist()), True)), counts)
        return self.from_hidden(hidden, embeddings, mask, attention)

    def _encode_sentences(self, embeddings: Tensor, row: Tensor, place: Tensor, lengths: Tensor) -> Tensor:
        """(sentence, hidden), of sentences (row, place, lengths) as above."""
        place = place[:, : int(lengths.max())]
        states = self.word_encoder(self.word_dropout(embeddings[row[:, None], place.clamp(min=0)]), lengths)
        weights = softmax(self.word_attention(states), place >= 0)
        return (weights[:, None] @ states).squeeze(1)


# --- tasks with a question


class QuestionClassifier(AttentionClassifier):
    """logits = decoder(tanh(W_p c + W_q q)), c the attended average of the text, q the question.

    Jain & Wallace (2019, section 2) and their code: text and question have an embedding table and an encoder each, one
    of QUESTION_ENCODERS. The attention depends on the question, and so does the decoder, whose tanh makes the read-out
    not affine. Arguments are AttentionClassifier's, but classifier_dropout is of what is attended.
    """

    def __init__(
        self,
        vectors: Tensor,
        encoder: str = "bilstm",
        attention: str = "additive",
        projection_name: str = "softmax",
        outputs: int = 3,
        frozen: bool = False,
        attention_share: float = 0.5,
        document_dropout: float = 0.0,
        classifier_dropout: float = 0.0,
        **encoder_options,
    ):
        nn.Module.__init__(self)  # not of the other class: initial weights are drawn in this order
        kind, self.summarise_query = QUESTION_ENCODERS[encoder]
        tables = (nn.Embedding.from_pretrained(vectors.clone(), freeze=frozen, padding_idx=PAD) for _ in range(2))
        self.embedding, self.query_embedding = tables
        self.encoder, self.query_encoder = (kind(vectors.shape[1], **encoder_options) for _ in range(2))
        size = self.encoder.hidden_size
        self.attention = WITH_QUERY[attention](size, share=attention_share)
        self.projection = projection(projection_name)
        self.affine_text, self.affine_query = nn.Linear(size, size // 2), nn.Linear(size, size // 2)
        self.decoder = nn.Linear(size // 2, outputs)
        self.dropout, self.last_dropout = nn.Dropout(document_dropout), nn.Dropout(classifier_dropout)

    def encode_query(self, batch: Batch) -> Tensor:
        """(batch, hidden): the encoded questions; ValueError where there are none."""
        if batch.query is None:
            raise ValueError("this model answers questions, and the batch has none; use texts with a question each")
        lengths = batch.query_mask.sum(dim=1) + 2
        hidden = self.query_encoder(self.dropout(self.query_embedding(batch.query)), lengths)
        return self.summarise_query(hidden, lengths, batch.query_mask)

    def decode(self, attention: Tensor, hidden: Tensor, query: Tensor) -> Tensor:
        """Logits of attention, (batch, token) or (batch, draw, token), on hidden: the same with class for token."""
        draws = attention if attention.dim() == 3 else attention[:, None]
        logits = self.answer(self.affine_text(self.last_dropout(draws @ hidden)), self.affine_query(query)[:, None])
        return logits if attention.dim() == 3 else logits.squeeze(1)

    def answer(self, text: Tensor, query: Tensor) -> Tensor:
        """Logits (..., class) of W_p c and W_q q, each (..., hidden / 2)."""
        return self.decoder((text + query).tanh().to(self.decoder.weight))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        return self.decode(attention, output.hidden, output.query)

    def token_logits(self, output: ModelOutput) -> None:
        """None: the read-out is not affine."""
