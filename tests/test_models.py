"""The interface of every model: its output, and attention imposed in place of its own."""

from dataclasses import replace
from functools import partial

import everything
import pytest
import small
import torch
from torch import nn

from lib.datasets import load
from lib.datasets.corpus import Split
from lib.importance import leave_one_out
from lib.models import ATTENTIONS, ENCODERS
from lib.models.check_interface import check_interface
from lib.training import Run, train

KINDS = [(encoder, attention) for encoder in ENCODERS for attention in ATTENTIONS]
FROZEN = {"frozen": (lambda: small.model(frozen=True), small.batch)}
REGISTERED = {f"{' '.join(kind)}": (partial(small.model, *kind), small.batch) for kind in KINDS}
EVERY = {name: (make, texts) for name, (make, texts, _) in everything.MODELS.items()} | FROZEN | REGISTERED


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_the_interface(name):
    """Whatever the padding, the other texts and the attention: lib.models.check_interface."""
    make, texts = EVERY[name]
    check_interface(make(), texts())


class OneDirection(nn.Module):
    """An encoder as a reader might add it."""

    def __init__(self, embedding_size, hidden_size=16):
        super().__init__()
        self.hidden_size = hidden_size
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True)

    def forward(self, embedded, lengths):
        return self.gru(embedded)[0]


def test_a_registered_encoder_is_trained_and_measured_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(ENCODERS, "gru", OneDirection)
    corpus = load("planted", "quick")
    few = replace(corpus, train=Split("train", corpus.train.instances[:60], corpus.vocabulary))
    options = (("embedding_size", 20), ("epochs", 1))
    trained = train(Run("planted", "gru", options=options), corpus=few, say=lambda _: None)
    assert isinstance(trained.model.encoder, OneDirection) and trained.model.encoder.hidden_size == 16
    batch = next(trained.batches("test", 4))
    check_interface(trained.model, batch)
    assert (leave_one_out(trained.model, batch) > 0).any(dim=1).all()


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
