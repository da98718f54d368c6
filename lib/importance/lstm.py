"""One direction of a one-layer LSTM in plain tensor operations, for sweeps over many deletions or states at once."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from lib import numerics as elementwise
from lib.models import AttentionModel
from lib.models.encoders import BiLSTM, reversed_by_length


def has_one_lstm(model: AttentionModel) -> bool:
    """Whether the encoder is a BiLSTM of one layer."""
    return isinstance(model.encoder, BiLSTM) and len(model.encoder.forwards) == 1


class Recurrence(NamedTuple):
    """The weights of a one-layer LSTM, scaled so that a step is one product and one tanh over all four gates.

    sigmoid(x) = (1 + tanh(x / 2)) / 2, so the rows of the input, forget and output gate are halved, and a state is kept
    as `twice` the hidden state, h2 = (1 + tanh(o / 2)) tanh(c), which halves the columns that read it.
    """

    input_weight: Tensor  # (4 hidden, embedding), the gates in torch's order: input, forget, cell, output
    input_bias: Tensor  # (4 hidden,)
    state_weight: Tensor  # (4 hidden, hidden)

    @classmethod
    def of(cls, lstm: nn.LSTM) -> "Recurrence":
        """The weights of one direction of torch's LSTM, scaled for this recurrence."""
        scale = torch.full_like(lstm.bias_ih_l0, 0.5)
        scale[2 * lstm.hidden_size : 3 * lstm.hidden_size] = 1  # the cell's candidate is a tanh already
        bias = (lstm.bias_ih_l0 + lstm.bias_hh_l0) * scale
        return cls(lstm.weight_ih_l0 * scale[:, None], bias, lstm.weight_hh_l0 * scale[:, None] / 2)

    def advance(self, gates: Tensor, twice: Tensor, cell: Tensor) -> None:
        """One step of all rows, in place. gates (row, 4 hidden) holds the inputs and then tanh of the gates;
        twice, cell (row, hidden) hold the states before and then after."""
        elementwise.tanh(gates.addmm_(twice, self.state_weight.T), out=gates)
        enter, keep, candidate, leave = gates.chunk(4, dim=-1)
        cell.addcmul_(keep, cell).lerp_(torch.addcmul(candidate, enter, candidate), 0.5)
        elementwise.tanh(cell, out=twice)
        twice.addcmul_(leave, twice)

    def run(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(twice the hidden states, cells), each (word, row, hidden); `inputs` becomes tanh of the gates in place."""
        words, rows, _ = inputs.shape
        states, cells = inputs.new_empty(2, words, rows, self.state_weight.shape[1])
        twice, cell = inputs.new_zeros(2, *states.shape[1:])
        for word in range(words):
            self.advance(inputs[word], twice, cell)
            states[word], cells[word] = twice, cell
        return states, cells


def both_directions(
    encoder: BiLSTM, embedded: Tensor, lengths: Tensor
) -> tuple[tuple[Recurrence, Recurrence], list[Tensor]]:
    """The directions of an encoder of one layer, and the projected inputs (word, text, gate) in each one's order."""
    directions = Recurrence.of(encoder.forwards[0]), Recurrence.of(encoder.backwards[0])
    inputs = []
    for each, words in zip(directions, (embedded, reversed_by_length(embedded, lengths)), strict=True):
        inputs.append((words @ each.input_weight.T + each.input_bias).transpose(0, 1).contiguous())
    return directions, inputs
