"""The Transformer encoder."""

import math

import pytest
import torch
from torch import nn

from lib.models.transformer import Transformer, positions


def test_it_is_torchs_encoder_layer_on_positions_and_embeddings():
    torch.manual_seed(0)
    ours = Transformer(6, 8, layers=2, heads=2).double().eval()
    embedded, lengths = torch.randn(3, 5, 6).double(), torch.tensor([5, 2, 4])
    theirs = ours.input(embedded) + positions(5, 8)
    padding = torch.arange(5) >= lengths[:, None]
    for layer in ours.layers:
        judge = nn.TransformerEncoderLayer(8, 2, 32, batch_first=True).double().eval()
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


def test_positions_by_hand():
    found = positions(7, 6)
    for place in range(7):
        for pair in range(3):
            angle = place / 10_000 ** (2 * pair / 6)
            assert found[place, 2 * pair : 2 * pair + 2].tolist() == pytest.approx([math.sin(angle), math.cos(angle)])
