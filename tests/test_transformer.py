"""The Transformer encoder and its inner attention."""

import math

import pytest
import torch
from small import batch, model
from torch import nn

from lib.importance import inner_attention
from lib.models.transformer import Transformer, positions, rollout


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


def test_inner_attention_is_a_distribution_over_the_texts_words():
    tested, given = model("transformer", heads=2), batch((5, 1, 12))
    inner = tested.inner_attention(given)
    assert inner.shape == (3, 2, 2, 14, 14)
    inside = torch.arange(14) < given.lengths[:, None]
    assert not inner.masked_fill(inside[:, None, None, None], 0).any()
    assert torch.allclose(inner.sum(dim=-1), torch.ones(1, dtype=torch.float64)) and (inner[2] > 0).all()


def test_explanations_are_distributions_over_the_tokens_and_rollout_is_the_product():
    tested, given = model("transformer", heads=2), batch((5, 1, 9))
    output, inner = tested(given), tested.inner_attention(given)
    for aggregation in ("averaged", "rollout", (1, 1)):
        found = inner_attention(aggregation)(tested, given, output)
        assert torch.allclose(found.sum(dim=1), torch.ones(3, dtype=torch.float64))
        assert not found[~given.mask].any()
    identity = torch.eye(11, dtype=torch.float64)
    by_hand = (inner[:, 1].mean(dim=1) + identity) / 2 @ ((inner[:, 0].mean(dim=1) + identity) / 2)
    assert torch.allclose(rollout(inner), by_hand)
    reached = torch.einsum("bp,bpi->bi", output.attention, by_hand).masked_fill(~given.mask, 0)
    expected = reached / reached.sum(dim=1, keepdim=True)
    assert torch.allclose(inner_attention("rollout")(tested, given, output), expected)


def test_unknown_and_missing_inner_attention_is_named():
    with pytest.raises(ValueError, match="known: averaged, rollout"):
        inner_attention("flow")
    with pytest.raises(ValueError, match="BiLSTM has no inner attention"):
        model("bilstm").inner_attention(batch())


@pytest.mark.parametrize("wrong", [{"heads": 3}, {"hidden_size": 7}])
def test_sizes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValueError, match="even multiple"):
        Transformer(6, **({"hidden_size": 8} | wrong))
