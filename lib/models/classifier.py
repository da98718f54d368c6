"""The models that classify texts: embed, encode, attend, read out.

Over words, over words and then sentences, or over the words of a text about which a question is asked.
"""

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.models.attention import ATTENTIONS, WITH_QUERY
from lib.models.encoders import ENCODERS, HIERARCHICAL, RETENTIONS, Average, BiLSTM, Convolution
from lib.models.interface import ModelOutput, require_gradient
from lib.numerics import by_length
from lib.projections import projection, softmax

WORDS = 2**12  # of the sentences that are encoded at once, padding included


class AttentionClassifier(nn.Module):
    """logits = decoder(attention @ hidden): a linear layer on the weighted average of the hidden states.

    Args:
        vectors: (word, embedding), the initial embedding table; row 0 is padding.
        outputs: 1 for one sigmoid output (two classes), else the number of classes.
        retention: one of RETENTIONS, how embeddings are kept in the hidden states; None: they are not.
        query_init: the initial query of dot attention, "default" as in torch or "normal", N(0, 1).
        frozen: the embedding table is not trained.
        attention_share: the size of additive attention's inner layer, as a share of the hidden states'.
        document_dropout: dropout of the encoder's input. classifier_dropout: of the decoder's.
        encoded_size: size of the encoder's input, where that is not the embeddings.
        encoder_options: of the encoder's class, such as hidden_size.
    Raises:
        KeyError: unknown encoder, attention, projection or retention.
    """

    encoders = ENCODERS

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
        kind = self.encoders[encoder]
        self.encoder = kind(encoded_size or vectors.shape[1], **encoder_options)
        if retention is not None:
            self.encoder = RETENTIONS[retention](self.encoder, vectors.shape[1])
        attention_options = {"query_init": query_init} if attention == "dot" else {"share": attention_share}
        kind = ATTENTIONS[attention]
        self.attention = kind(self.encoder.hidden_size, **attention_options)
        self.projection = projection(projection_name)
        self.decoder = nn.Linear(self.encoder.hidden_size, outputs)
        self.dropout, self.last_dropout = nn.Dropout(document_dropout), nn.Dropout(classifier_dropout)

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for a batch; `attention` (batch, token), where given, replaces the model's own."""
        return self.from_embeddings(self.embedding(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same, with `embeddings` (batch, word, embedding) in place of those of the batch's tokens."""
        require_gradient(embeddings)
        hidden = self.encoder(self.dropout(embeddings), batch.lengths)
        return self.from_hidden(hidden, embeddings, batch.mask, attention)

    def from_hidden(
        self, hidden: Tensor, embeddings: Tensor, mask: Tensor, attention: Tensor | None = None
    ) -> ModelOutput:
        """The output for the hidden states (batch, token, hidden) of these embeddings (batch, word, embedding)."""
        scores = self.attention(hidden)
        if attention is None:
            attention = self.projection(scores, mask)
        return ModelOutput(self.decode(attention, hidden), scores, attention, mask, hidden, embeddings)

    def decode(self, attention: Tensor, hidden: Tensor) -> Tensor:
        """Logits (batch, class) of attention (batch, token) on hidden (batch, token, hidden)."""
        return self.decoder(self.last_dropout((attention.unsqueeze(1) @ hidden).squeeze(1)))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token."""
        if attention.dim() == 2:
            return self.decode(attention, output.hidden)
        token_logits, bias = self.token_logits(output)
        return attention @ token_logits + bias

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor]:
        """((batch, token, class), bias (class,)): logits = attention @ token_logits + bias."""
        return output.hidden @ self.decoder.weight.T, self.decoder.bias


class GuidedClassifier(AttentionClassifier):
    """A classifier whose attention is given with each text, as `batch.guide`, in training and in test.

    Wiegreffe & Pinter (2019), section 3.4.
    """

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The forward pass from embeddings; attention is the given one, else the guide. ValueError without either."""
        if attention is None and batch.guide is None:
            raise ValueError("this model is guided, and the batch has no attention: use batches of its own run")
        return super().from_embeddings(embeddings, batch, batch.guide if attention is None else attention)


class HierarchicalClassifier(AttentionClassifier):
    """The hierarchical attention network: attention over the words of each sentence, then over the sentences.

    Yang et al. (2016); Serrano & Smith (2019), section 3 and appendix A.1. `encoder`, `attention`, `projection` and
    `decoder` are those of the sentences, and so is every `token` of its ModelOutput; `word_encoder` and
    `word_attention` are those of the words of a sentence.

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
        word_encoder = HIERARCHICAL[encoder](vectors.shape[1], **encoder_options)
        options |= {"encoded_size": word_encoder.hidden_size, "attention_share": attention_share}
        super().__init__(vectors, encoder, attention, **options)
        self.word_encoder = word_encoder
        share = {"share": attention_share} if attention == "additive" else {}
        self.word_attention = ATTENTIONS[attention](word_encoder.hidden_size, **share)
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


# --- tasks with a question


def last_states(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the last state of each direction."""
    half = hidden.shape[-1] // 2
    rows = torch.arange(len(hidden), device=hidden.device)
    return torch.cat([hidden[rows, lengths - 1, :half], hidden[:, 0, half:]], dim=-1)


def mean(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the mean over all words, start and end included.

    Differs from the paper: their code averages over padding too.
    """
    inside = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]
    return (hidden * inside[:, :, None]).sum(dim=1) / lengths[:, None]


def maximum(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the maximum of each channel, 0 or more after ReLU, over the question's own words."""
    return hidden.masked_fill(~mask[:, :, None], 0).amax(dim=1)


# Encoders of text and question, each with the function that makes one vector of the question's hidden states:
# (hidden (batch, word, hidden), lengths (batch,), mask (batch, word)) -> (batch, hidden)
QUESTION_ENCODERS = {"bilstm": (BiLSTM, last_states), "average": (Average, mean), "conv": (Convolution, maximum)}


class QuestionClassifier(nn.Module):
    """logits = decoder(tanh(W_p c + W_q q)), c the attended average of the text, q the question.

    Jain & Wallace (2019, section 2) and their code: text and question have an embedding table and an encoder each. The
    attention over the text depends on the question, and so does the decoder, whose tanh makes the read-out not affine
    in the attention.

    Args:
        vectors: (word, embedding), the initial value of both embedding tables; row 0 is padding.
        encoder: one of QUESTION_ENCODERS, for text and question alike.
        outputs: the number of classes.
        The others are AttentionClassifier's.
    Raises:
        KeyError: unknown encoder, attention or projection.
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
        super().__init__()
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

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for a batch; `attention` (batch, token), where given, replaces the model's own."""
        return self.from_embeddings(self.embedding(batch.tokens), batch, attention)

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same, with `embeddings` (batch, word, embedding) in place of those of the text's tokens.

        Raises:
            ValueError: the batch has no questions.
        """
        if batch.query is None:
            raise ValueError("this model answers questions, and the batch has none; use texts with a question each")
        require_gradient(embeddings)
        hidden = self.encoder(self.dropout(embeddings), batch.lengths)
        query = self.encode_query(batch)
        scores = self.attention(hidden, query)
        if attention is None:
            attention = self.projection(scores, batch.mask)
        logits = self._decode(attention[:, None] @ hidden, query).squeeze(1)
        return ModelOutput(logits, scores, attention, batch.mask, hidden, embeddings, query)

    def encode_query(self, batch: Batch) -> Tensor:
        """(batch, hidden): the encoded questions."""
        lengths = batch.query_mask.sum(dim=1) + 2
        hidden = self.query_encoder(self.dropout(self.query_embedding(batch.query)), lengths)
        return self.summarise_query(hidden, lengths, batch.query_mask)

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token."""
        draws = attention if attention.dim() == 3 else attention[:, None]
        logits = self._decode(draws @ output.hidden, output.query)
        return logits if attention.dim() == 3 else logits.squeeze(1)

    def token_logits(self, output: ModelOutput) -> None:
        """None: the read-out is not affine."""

    def _decode(self, attended: Tensor, query: Tensor) -> Tensor:
        """(batch, draw, class) of attended averages (batch, draw, hidden)."""
        return self.answer(self.affine_text(self.last_dropout(attended)), self.affine_query(query)[:, None])

    def answer(self, text: Tensor, query: Tensor) -> Tensor:
        """Logits (..., class) of W_p c and W_q q, each (..., hidden / 2)."""
        return self.decoder((text + query).tanh().to(self.decoder.weight))
