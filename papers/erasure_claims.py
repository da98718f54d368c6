"""What Serrano & Smith (2019) claim, and what would refute it."""

from functools import partial

from papers.claims import Claim

KEY = "serrano2019"
OFTEN = 0.47  # log of 1.6, the least ratio that the paper reports for a model with an encoder
FEW_FLIPS = 0.25  # of the decisions
SHIFT = 0.25  # of the attention
ALL, ENCODED, MANY_CLASSES = "all models", "models with an encoder", "all models, with more than two classes"
TIE = "two orders that know nothing of the model are sooner equally often: 0"
HEAVIEST = (
    "erasing a heavy weight changes more than erasing a light one wherever chance has placed it, so that this claim "
    "speaks for neither side; what exceeds chance is judged by itself"
)
SHUFFLED = "the same model and text with the weights in a random order, as the second side: 0"
LESS_SURE = (
    f"{SHUFFLED}. With these a model is less sure, and moves more easily: that the top item exceeds chance says "
    "something, that it does not says little, so that this claim speaks for neither side"
)

_claim = partial(Claim, KEY)
_proves_little = partial(_claim, proves_little=True)
_for, _against = (
    {question: partial(_claim, speaks=side, question=question) for question in ("matters", "ranks")}
    for side in ("for", "against")
)
_CLAIMS = [
    _proves_little(
        "the top item matters most",
        "Erasing the most attended item changes the output more than erasing another",
        *("section 4.1", "direction", 0.01, "nats", ALL),
        control=f"an item drawn at random in place of the top one gives 0; but {HEAVIEST}. No verdict where no "
        "ranking's top item changes the output by the bound on average",
        refuted="the mean JSD of all other items is the larger one",
        sides=("top item", "another item"),
    ),
    _against["matters"](
        "a far larger weight often matters little more",
        "Even where the top item leads by .3 to .5 of the attention, many positive differences of JSD are near 0",
        *("section 4.1, figure 3", "at least", 0.25, "of these texts below .05 nats", ALL),
        control="no verdict where in most of these texts no ranking's top item changes the output by .05 nats",
        refuted="where attention differs that much, nearly every difference of JSD is .05 nats or more",
    ),
    _claim(
        "the top item matters most, beyond chance",
        "Erasing the most attended item, not another, changes the output more than if chance had placed the weights",
        *("ours, of section 4.1", "direction", 0.01, "nats", ALL),
        control=LESS_SURE,
        refuted="the top of shuffled weights changes the output as much, or more",
        sides=("own weights", "shuffled"),
    ),
    _proves_little(
        "the top item decides more often",
        "Erasing the most attended item flips the decision more often than erasing another",
        *("section 4.2, table 2", "direction", 0.02, "of the decisions", ALL),
        control=f"an item drawn at random in place of the top one gives 0; but {HEAVIEST}",
        refuted="another item flips more decisions",
        sides=("top item", "another item"),
    ),
    _claim(
        "the top item decides more often, beyond chance",
        "Erasing the most attended item, not another, flips the decision more often than if chance had placed the "
        "weights",
        *("ours, of section 4.2", "direction", 0.02, "of the decisions", ALL),
        control=LESS_SURE,
        refuted="the top of shuffled weights flips as many decisions, or more",
        sides=("own weights", "shuffled"),
    ),
    _proves_little(
        "where another item matters more, their weights are closer",
        "Where erasing another item changes more, attention's lead over it is smaller",
        *("section 4.1, figure 4", "direction", 0.05, "of the attention", ALL),
        control=f"not that weights are small everywhere: all other texts stand beside these; but {HEAVIEST}",
        refuted="in these texts the top item leads by as much attention as elsewhere",
        sides=("gap in other texts", "gap in these"),
    ),
    _against["matters"](
        "erasing it flips few decisions",
        "Erasing the most attended item leaves the vast majority of decisions as they were",
        *("section 4.2, table 2", "little", FEW_FLIPS, "of the decisions flip", "models over sentences"),
        control="no verdict where no single item flips more than a quarter: then it is true of any item",
        refuted="the top item flips more than a quarter of the decisions",
        sides=("", "best single item"),
        needs=(FEW_FLIPS, "no single item flips the decision in more than {:.0%} of the texts: true of any ranking"),
    ),
    _proves_little(
        "attention flips sooner than a random order",
        "Fewer items flip the decision along attention than along a random order",
        *("section 5.4", "direction", 0.05, "of the texts (sooner less later)", ALL),
        control=f"{TIE}; but {HEAVIEST}",
        refuted="a random order is sooner more often than attention",
    ),
    _for["matters"](
        "attention flips sooner than a random order, beyond chance",
        "Along attention decisions flip sooner than along a random order by more than if chance had placed the weights",
        *("ours, of section 5.4", "direction", 0.05, "of the texts (sooner less later)", ALL),
        control=f"{SHUFFLED}; the random orders are of the same weights as the attention beside them",
        refuted="along shuffled weights they flip as soon, or sooner",
        sides=("own weights", "shuffled"),
        refuted_by_none=True,
    ),
    _against["ranks"](
        "gradients flip sooner",
        "With an encoder, fewer items flip the decision along the gradient than along attention",
        *("section 5.4", "direction", 0.05, "of the texts", ENCODED),
        control=TIE,
        refuted="attention is sooner as often as the gradient, or more often",
        sides=("gradient sooner", "attention sooner"),
        refuted_by_none=True,
    ),
    _against["ranks"](
        "gradients flip sooner 1.6 times as often",
        "With an encoder, the gradient flips the decision sooner than attention at least 1.6 times as often as later",
        *("section 5.4", "at least", OFTEN, "log of the ratio (0.47: 1.6 times)", ENCODED),
        control="two orders that know nothing of the model are sooner equally often: ratio 1, log 0",
        refuted="the ratio is below 1.6",
    ),
    _claim(
        "gradients flip most texts sooner",
        "With an encoder, the gradient flips over half of the texts with fewer items than attention",
        *("ours, of section 5.4: it holds in 10 of 16 models", "most runs", 0.5, "of the runs", ENCODED),
        control="ties count for neither, so that an order without skill stays below half of the texts; to stay below "
        "does not show that attention ranks as well",
        refuted="in most runs it is half of the texts or fewer",
    ),
    _proves_little(
        "products flip sooner",
        "Fewer items flip the decision along gradient × attention than along attention",
        *("sections 5.4 and 5.6", "direction", 0.05, "of the texts", MANY_CLASSES),
        control=f"{TIE}; with two classes gradient × attention is nearly the best order by definition, and cannot lose",
        refuted="attention is sooner more often than gradient × attention",
        sides=("product sooner", "attention sooner"),
    ),
    _proves_little(
        "attention does not find the fewest",
        "Much of the time attention does not find a smallest set of items that flips the decision",
        *("section 5.4", "at least", 0.25, "of the texts missed", ALL),
        control="a miss counts where the gradient or gradient × attention finds such a set: neither ties nor texts "
        "that are too hard for every order. It speaks for neither side: with two classes gradient × attention is the "
        "best order by definition, and the gradient may miss more than attention",
        refuted="attention misses fewer than a quarter",
    ),
    _claim(
        "decisions flip late",
        "Along every order, a large share of a text's words must go before the decision flips",
        *(
            "section 5.5",
            "at least",
            0.25,
            "of the items, along gradient × attention",
            "FLAN with an encoder, on real texts",
        ),
        control="how few words would be enough stands beside it. A model that is not sure flips soon, and a decision "
        "that is the bias's own flips never",
        refuted="less than a quarter of the words must go along the soonest of the paper's orders",
        sides=("", "fewest possible"),
    ),
    *(
        _claim(
            f"context delays flips ({along})",
            f"The further a state reaches, the larger the share of the words that must go ({along})",
            *("section 5.6", "direction", 0.05, "of the items", "FLAN: rnn against conv, conv against noenc"),
            control="the same texts and seeds in pairs; two models of equal reach give 0",
            refuted="the model whose states reach less far needs the larger share",
            sides=("further", "less far"),
        )
        for along in ("along attention", "with the fewest items possible")
    ),
    _proves_little(
        "without an encoder attention is on par",
        "Without an encoder attention flips decisions as soon as the gradient, or sooner",
        *("section 5.6", "at least", -0.05, "of the texts", "models without an encoder"),
        control="an order drawn at random is later than the gradient more often than sooner, well below 0; but weights "
        "that chance has placed may be sooner, since the heaviest go first, so that this claim speaks for neither side",
        refuted="the gradient is sooner in over 5% more of the texts than attention",
        sides=("attention sooner", "gradient sooner"),
    ),
    _proves_little(
        "the product's top item decides more often",
        "The top item of gradient × attention flips more decisions than attention's",
        *("appendix A.3, figure 13 (24 of 24 models)", "direction", 0.01, "of the decisions", MANY_CLASSES),
        control="two rankings with the same top item give 0; with two classes the product's is nearly the best one by "
        "definition, and cannot lose",
        refuted="attention's top item flips more decisions",
        sides=("gradient × attention", "attention"),
    ),
    _proves_little(
        "the gradient's top item decides less often",
        "The gradient's top item flips fewer decisions than attention's",
        *("ours, of figure 12: it holds in 14 of 24 models", "most runs", 0.5, "of the runs", ALL),
        control="two rankings that know nothing of the model: half of the runs; but the heaviest weight decides more "
        "often than others wherever chance has placed it, so that this claim speaks for neither side",
        refuted="in most runs it flips as many or more",
    ),
    _proves_little(
        "other orders erase a quarter less attention",
        "What must go along gradients, or gradient × attention, had less attention by .25 or more",
        *("appendix A.3, figure 11", "most runs", 0.5, "of the runs", ALL),
        control="the first items along attention hold the most by definition, so less is not enough. "
        "That is not far from what weights have that chance has placed: this claim speaks for neither side",
        refuted="in most runs it is less than .25",
    ),
]
CLAIMS = {one.short: one for one in _CLAIMS}
