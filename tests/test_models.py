"""The interface of every model: its output, and attention imposed in place of its own."""

import math
from functools import partial

import everything
import pytest
import small
import torch

from lib.models import ATTENTIONS, ENCODERS
from lib.models.check_interface import check_interface
from lib.models.transformer import Transformer

KINDS = [(encoder, attention) for encoder in ENCODERS for attention in ATTENTIONS]
OTHERS = {"frozen": (lambda: small.model(frozen=True), small.batch)}
OTHERS |= {"single precision": (lambda: small.model().float(), small.batch)}
REGISTERED = {f"{' '.join(kind)}": (partial(small.model, *kind), small.batch) for kind in KINDS}
EVERY = {name: (make, texts) for name, (make, texts, _) in everything.MODELS.items()} | OTHERS | REGISTERED


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_the_interface_and_the_check_leaves_it_as_it_was(name):
    """Whatever the padding, the other texts and the attention: lib.models.check_interface."""
    make, texts = EVERY[name]
    tested = make().train()
    check_interface(tested, texts())
    assert all(part.training for part in tested.modules()) and all(p.grad is None for p in tested.parameters())


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


def test_the_transformer_is_torchs_encoder_layer_on_positions_and_embeddings():
    torch.manual_seed(0)
    ours = Transformer(6, 8, layers=2, heads=2).double().eval()
    embedded, lengths = torch.randn(3, 5, 6).double(), torch.tensor([5, 2, 4])
    angles = [[place / 10_000 ** (2 * pair / 8) for pair in range(4)] for place in range(5)]
    by_hand = torch.tensor([[of(one) for one in row for of in (math.sin, math.cos)] for row in angles])
    theirs = ours.input(embedded) + by_hand.double()
    padding = torch.arange(5) >= lengths[:, None]
    for layer in ours.layers:
        judge = torch.nn.TransformerEncoderLayer(8, 2, 32, batch_first=True).double().eval()
        with torch.no_grad():
            parts = layer.query, layer.key, layer.value
            judge.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            judge.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        judge.self_attn.out_proj.load_state_dict(layer.output.state_dict())
        judge.linear1.load_state_dict(layer.inner[0].state_dict())
        judge.linear2.load_state_dict(layer.inner[3].state_dict())
        judge.norm1.load_state_dict(layer.norms[0].state_dict())
        judge.norm2.load_state_dict(layer.norms[1].state_dict())
        theirs = judge(theirs, src_key_padding_mask=padding)
    assert torch.allclose(ours(embedded, lengths)[~padding], theirs[~padding], atol=1e-10)
