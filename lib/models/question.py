"""The model of tasks with a question (Jain & Wallace 2019, section 2, and their code): the question asks the text.

Text and question have an embedding table and an encoder each. Attention over the text's hidden states depends on the
question, and so does the decoder, whose layer of tanh makes the read-out other than affine in the attention.
"""

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.models.attention import WITH_QUERY
from lib.models.classifier import pick
from lib.models.encoders import Average, BiLSTM, Convolution
from lib.models.interface import ModelOutput
from lib.projections import projection

NEVER = -1e30  # the logit of a class that may not answer: its probability is exactly 0, and nothing is infinite


def ends(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): each direction's last state."""
    half = hidden.shape[-1] // 2
    rows = torch.arange(len(hidden), device=hidden.device)
    return torch.cat([hidden[rows, lengths - 1, :half], hidden[:, 0, half:]], dim=-1)


def mean(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the mean over all words, start and end included.

    Differs from the paper: their code counts padding too.
    """
    inside = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]
    return (hidden * inside[:, :, None]).sum(dim=1) / lengths[:, None]


def largest(hidden: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """(batch, hidden): the largest value of each channel over the question's own words."""
    return hidden.masked_fill(~mask[:, :, None], 0).amax(dim=1)  # ReLU left nothing below 0


# The encoders that say one thing of a whole question, and how: (hidden, lengths, mask) -> (batch, hidden).
ANSWERING = {"bilstm": (BiLSTM, ends), "average": (Average, mean), "conv": (Convolution, largest)}


class QuestionClassifier(nn.Module):
    """Which class answers the question of a text: Linear(tanh(W_p c + W_q q)), c the attended text, q the question.

    Args:
        vectors: (word, embedding), from which both embedding tables start; row 0 is padding.
        encoder: one of ANSWERING, for text and question alike.
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
        kind, self.whole = pick(ANSWERING, encoder, "encoder")
        tables = (nn.Embedding.from_pretrained(vectors.clone(), freeze=frozen, padding_idx=PAD) for _ in range(2))
        self.embedding, self.query_embedding = tables
        self.encoder, self.query_encoder = (kind(vectors.shape[1], **encoder_options) for _ in range(2))
        size = self.encoder.hidden_size
        self.attention = pick(WITH_QUERY, attention, "attention")(size, share=attention_share)
        self.projection = projection(projection_name)
        self.of_text, self.of_query = nn.Linear(size, size // 2), nn.Linear(size, size // 2)
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
            raise ValueError("this model answers questions, and the batch asks none; take texts that come with one")
        if torch.is_grad_enabled() and not embeddings.requires_grad:
            embeddings.requires_grad_()  # importance needs their gradient, also when the table is frozen
        hidden = self.encoder(self.dropout(embeddings), batch.lengths)
        query = self.asked(batch)
        scores = self.attention(hidden, query)
        if attention is None:
            attention = self.projection(scores, batch.mask)
        logits = self._decode(attention[:, None] @ hidden, query, batch.answers).squeeze(1)
        return ModelOutput(logits, scores, attention, batch.mask, hidden, embeddings, query, batch.answers)

    def asked(self, batch: Batch) -> Tensor:
        """(batch, hidden): the encoded questions."""
        lengths = batch.query_mask.sum(dim=1) + 2
        hidden = self.query_encoder(self.dropout(self.query_embedding(batch.query)), lengths)
        return self.whole(hidden, lengths, batch.query_mask)

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token."""
        draws = attention if attention.dim() == 3 else attention[:, None]
        logits = self._decode(draws @ output.hidden, output.query, output.answers)
        return logits if attention.dim() == 3 else logits.squeeze(1)

    def token_logits(self, output: ModelOutput) -> None:
        """None: the read-out is not affine."""

    def _decode(self, attended: Tensor, query: Tensor, answers: Tensor | None) -> Tensor:
        """(batch, draw, class) of attended texts (batch, draw, hidden)."""
        allowed = None if answers is None else answers[:, None]
        return self.answer(self.of_text(self.last_dropout(attended)), self.of_query(query)[:, None], allowed)

    def answer(self, of_text: Tensor, of_query: Tensor, answers: Tensor | None) -> Tensor:
        """(..., class) logits of W_p of attended texts and W_q of their questions, each (..., hidden / 2).

        Args:
            answers: (..., class) True for the classes that may answer; None: all.
        """
        logits = self.decoder((of_text + of_query).tanh().to(self.decoder.weight))
        return logits if answers is None else logits.masked_fill(~answers, NEVER)
