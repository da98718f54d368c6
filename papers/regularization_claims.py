"""What Tutek & Snajder (2020) claim, and how each claim is judged."""

from papers.claims import Claim

KEY = "tutek2020"
RECOMMENDED = ("tying", "mlm")
LEARNED_TYING = "tying_with_learned_embeddings"  # as section 3 has it, where the report's tying has fixed ones
ON_PAR = 0.02  # of F1: the paper's own largest loss with the variants that it recommends, on all but one dataset
ATTENDS = 0.95  # of the entropy of equal weights: not uniform up to here

METHODS = "BiLSTMs with tying or mlm on two classes: what it proposes and recommends (section 6)"
FREEZING = "the comparable base: with fixed embeddings, as the variant's, where these are fixed"
GATES = (
    "no verdict where its F1, or its control's, is more than .02 below the base's, or where attention is nearly uniform"
)

CLAIMS = {
    claim.short: claim
    for claim in (
        *(
            Claim(
                KEY,
                short,
                f"With {weights} a regularized model loses more F1 than a comparable base",
                "section 4.1, table 1",
                "direction",
                ON_PAR,
                "of F1",
                METHODS,
                f"{FREEZING}; {GATES}",
                "losing less F1 than the control does",
                ("comparable base", "regularized"),
            )
            for short, weights in (
                ("attention matters more", "permuted attention"),
                ("equal weights cost more", "equal weights"),
            )
        ),
        Claim(
            KEY,
            "without a loss",
            "A regularized model classifies about as well as the base",
            "section 4.1, table 1",
            "at least",
            -ON_PAR,
            "of F1",
            METHODS,
            "what freezing alone costs is beside it; no verdict where a run kept its last epoch: undertraining refutes "
            "no method",
            "an F1 more than .02 below the base's, fully trained",
            ("regularized", "base"),
        ),
        Claim(
            KEY,
            "words are kept",
            "A regularized model's hidden states share more information with their words than freezing alone gives",
            "section 4.2, table 2",
            "direction",
            0.1,
            "nats",
            "tying and mlm with additive attention, two classes (table 2); residual adds a word's vector to its state",
            f"{FREEZING}; of each what shuffled labels give is subtracted",
            "no more information than the base with fixed embeddings has",
            ("regularized", "freezing alone"),
        ),
        Claim(
            KEY,
            "adversaries are harder to find",
            "An adversary pays more TVD for the same JSD than the base's does",
            "section 4.3, figure 1, from which the paper does not attempt to draw many conclusions: section 3.3",
            "direction",
            0.02,
            "of TVD",
            "mlm, the model of the figure",
            "imitation alone (lambda 0): its TVD, the floor, is subtracted from either curve; no verdict where a floor "
            "exceeds the effect, where imitation fails, a run does not converge, or with one seed; mlm's embeddings "
            "are fixed and the base's learn, so freezing alone may be a part of it",
            "an adversary that pays less than the base's",
            ("regularized", "base"),
        ),
        Claim(
            KEY,
            "neutral words stay neutral",
            "A regularized model's tokens, each read alone, are less sure of the prediction than a comparable base's",
            "section 5, table 3",
            "direction",
            0.02,
            "of probability",
            METHODS,
            f"{FREEZING}; {GATES}, or where whole texts lose as much confidence as their tokens",
            "tokens that are as sure as the control's",
            ("comparable base", "regularized"),
        ),
        Claim(
            KEY,
            "depth makes attention matter less",
            "The more layers, the less F1 the base loses with permuted attention",
            "appendix B (1), table 6, to be taken with a grain of salt",
            "direction",
            ON_PAR,
            "of F1",
            "the base: more layers against one, two classes",
            f"a deep model that learns nothing loses nothing: {GATES} (of one layer)",
            "a deep base that loses more",
            ("change with more layers", "with one"),
        ),
        Claim(
            KEY,
            "regularization does less in depth",
            "What a variant loses beyond its control with permuted attention shrinks with the number of layers",
            "appendix B (2), table 6: inconsistently, and some of 3 layers do not follow",
            "trend",
            0.0,
            "tau-b",
            METHODS,
            f"the base of the same depth and seed, with fixed embeddings where the variant's are; the layers' order is "
            f"shuffled within seeds; {GATES} (of one layer)",
            "a loss that grows with depth in every seed",
        ),
        Claim(
            KEY,
            "residual is like concat",
            "Residual is about as fragile as concat",
            "section 4.1: consistently comparable",
            "little",
            ON_PAR,
            "of F1",
            "residual against concat, two classes",
            f"each less what its own control loses ({FREEZING}); no verdict where neither loses more than .02, so that "
            "any two would be alike",
            "a difference beyond .02",
            ("residual beyond its control", "concat beyond its own"),
        ),
        Claim(
            KEY,
            "longer texts are more fragile",
            "With permuted attention the longer half of the texts loses more balanced accuracy than the shorter",
            "appendix A, of datasets; of texts of one dataset: ours",
            "direction",
            ON_PAR,
            "of balanced accuracy",
            "the base, tying and mlm on two classes",
            "balanced accuracy, since F1 follows the share of a class in each half; no verdict where attention is "
            "uniform",
            "shorter texts that lose more",
            ("change of the shorter", "of the longer"),
        ),
        Claim(
            KEY,
            "initialisation decides",
            "Dot attention ends up uniform from the default start of its query, and not from N(0, 1)",
            "appendix C",
            "most runs",
            0.5,
            "of the pairs",
            "the base with dot attention",
            "the other start, with the same seed and data: entropy of at least .97 of that of equal weights against at "
            "most .95",
            "a default start that attends, or N(0, 1) ending up uniform",
            ("entropy from the default start", "from N(0, 1)"),
        ),
        Claim(
            KEY,
            "attention comes onto the reason",
            "A regularized model's attention ranks the words that decide the label higher than a comparable base's",
            "ours; section 6 leaves it open",
            "direction",
            0.02,
            "of average precision",
            "residual, tying and mlm, where the words that decide are known",
            f"{FREEZING}; {GATES}",
            "a lower average precision than the control's",
            ("regularized", "comparable base"),
        ),
    )
}
