"""The interface of every model: its output, and attention imposed in place of its own."""

from functools import partial

import everything
import pytest
import small
import torch

from lib.models import ATTENTIONS, ENCODERS
from lib.models.check_interface import check_interface

KINDS = [(encoder, attention) for encoder in ENCODERS for attention in ATTENTIONS]
FROZEN = {"frozen": (lambda: small.model(frozen=True), small.batch)}
REGISTERED = {f"{' '.join(kind)}": (partial(small.model, *kind), small.batch) for kind in KINDS}
EVERY = {name: (make, texts) for name, (make, texts, _) in everything.MODELS.items()} | FROZEN | REGISTERED


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_the_interface(name):
    """Whatever the padding, the other texts and the attention: lib.models.check_interface."""
    make, texts = EVERY[name]
    check_interface(make(), texts())


def test_imposed_attention_is_used_exactly():
    model, batch = small.model(), small.batch()
    output = model(batch)
    one_hot = torch.nn.functional.one_hot(batch.mask.double().argmax(1), batch.mask.shape[1]).double()
    imposed = model(batch, attention=one_hot)
    first = torch.stack([output.hidden[row, 1] for row in range(len(batch))])
    torch.testing.assert_close(imposed.logits, model.decoder(first), rtol=0, atol=1e-12)
    assert torch.equal(imposed.attention, one_hot) and output.attention[0, 1] == 1, "the first text has one token"
    with torch.inference_mode():
        assert not model(batch).embeddings.requires_grad


def test_the_bilstm_is_torchs_bidirectional_lstm_on_packed_texts():
    model, batch = small.model(), small.batch()
    both = torch.nn.LSTM(10, 4, batch_first=True, bidirectional=True).double()
    for direction, suffix in ((model.encoder.forwards[0], "l0"), (model.encoder.backwards[0], "l0_reverse")):
        for name, value in direction.named_parameters():
            getattr(both, name.replace("l0", suffix)).data = value.data
    embedded = model.embedding(batch.tokens)
    pack = torch.nn.utils.rnn.pack_padded_sequence(embedded, batch.lengths, batch_first=True, enforce_sorted=False)
    packed, _ = torch.nn.utils.rnn.pad_packed_sequence(both(pack)[0], batch_first=True)
    ours = model.encoder(embedded, batch.lengths)
    inside = torch.arange(ours.shape[1]) < batch.lengths[:, None]
    torch.testing.assert_close(ours[inside], packed[inside], rtol=0, atol=1e-12)


def test_the_convolution_sees_zeros_beyond_the_text():
    model, batch = small.model("conv"), small.batch()
    row = batch.rows(torch.tensor([2]))
    embedded = torch.nn.functional.pad(model.embedding(row.tokens)[0], (0, 0, 3, 3))
    hidden = model(batch).hidden[2]
    for position in range(int(row.lengths)):
        parts = [
            conv.bias + torch.einsum("oiw,wi->o", conv.weight, embedded[position + 3 - w // 2 : position + 4 + w // 2])
            for conv, w in zip(model.encoder.convolutions, (1, 3, 5, 7), strict=True)
        ]
        torch.testing.assert_close(hidden[position], torch.relu(torch.cat(parts)))
