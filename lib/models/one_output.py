"""A model with an output for each of two classes as one with a single sigmoid output: the same probabilities."""

from dataclasses import replace

from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.models.output import AttentionModel, ModelOutput

SAME = ("projection", "inner_attention", "reads_first", "words_at_once", "heads", "vocabulary")


class OneOutput(nn.Module):
    """The difference of two logits: softmax of both is sigmoid of it. What else the model offers it offers too."""

    def __init__(self, model: AttentionModel):
        super().__init__()
        self.model = model
        for name in SAME:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "without_text"):
            self.without_text = lambda batch: apart(model.without_text(batch))
        if hasattr(model, "with_inner_attention"):
            self.with_inner_attention = lambda batch, imposed: as_one(model.with_inner_attention(batch, imposed))

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return as_one(self.model(batch, attention=attention))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        return apart(self.model.read_out(output, attention))

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        affine = self.model.token_logits(output)
        return None if affine is None else (apart(affine[0]), apart(affine[1]))


def as_one(output: ModelOutput) -> ModelOutput:
    return replace(output, logits=apart(output.logits))


def apart(logits: Tensor) -> Tensor:
    """(..., 2) -> (..., 1): the second less the first."""
    return logits[..., 1:] - logits[..., :1]
