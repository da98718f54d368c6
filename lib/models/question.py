"""The model of tasks with a question (Jain & Wallace 2019, section 2, and their code).

Text and question have an embedding table and an encoder each. The attention over the text depends on the question, and
so does the decoder, whose tanh makes the read-out not affine in the attention.
"""

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.models.attention import WITH_QUERY
from lib.models.encoders import Average, BiLSTM, Convolution, registered
from lib.models.interface import ModelOutput, require_gradient
from lib.projections import projection

NEVER = -1e30  # the logit of a class that may not answer: finite, and its probability is exactly 0


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
        kind, self.summarise_query = registered(QUESTION_ENCODERS, encoder, "encoder")
        tables = (nn.Embedding.from_pretrained(vectors.clone(), freeze=frozen, padding_idx=PAD) for _ in range(2))
        self.embedding, self.query_embedding = tables
        self.encoder, self.query_encoder = (kind(vectors.shape[1], **encoder_options) for _ in range(2))
        size = self.encoder.hidden_size
        self.attention = registered(WITH_QUERY, attention, "attention")(size, share=attention_share)
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
        logits = self._decode(attention[:, None] @ hidden, query, batch.answers).squeeze(1)
        return ModelOutput(logits, scores, attention, batch.mask, hidden, embeddings, query, batch.answers)

    def encode_query(self, batch: Batch) -> Tensor:
        """(batch, hidden): the encoded questions."""
        lengths = batch.query_mask.sum(dim=1) + 2
        hidden = self.query_encoder(self.dropout(self.query_embedding(batch.query)), lengths)
        return self.summarise_query(hidden, lengths, batch.query_mask)

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token."""
        draws = attention if attention.dim() == 3 else attention[:, None]
        logits = self._decode(draws @ output.hidden, output.query, output.answers)
        return logits if attention.dim() == 3 else logits.squeeze(1)

    def token_logits(self, output: ModelOutput) -> None:
        """None: the read-out is not affine."""

    def _decode(self, attended: Tensor, query: Tensor, answers: Tensor | None) -> Tensor:
        """(batch, draw, class) of attended averages (batch, draw, hidden)."""
        allowed = None if answers is None else answers[:, None]
        return self.answer(self.affine_text(self.last_dropout(attended)), self.affine_query(query)[:, None], allowed)

    def answer(self, text: Tensor, query: Tensor, answers: Tensor | None) -> Tensor:
        """Logits (..., class) of W_p c and W_q q, each (..., hidden / 2).

        Args:
            answers: (..., class) True for the classes that may answer; None: all.
        """
        logits = self.decoder((text + query).tanh().to(self.decoder.weight))
        return logits if answers is None else logits.masked_fill(~answers, NEVER)
