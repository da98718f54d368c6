"""What Wiegreffe & Pinter (2019) claim, and what would refute it."""

from lib.analysis.histories import FAR, ON_PAR
from papers.claims import Claim

KEY = "wiegreffe2019"
MATTERS = 0.01  # of F1: SST's .009 is "borderline" in the paper; the other datasets that it keeps have .023 and more
NATS = 0.05  # of JSD
PRICE = 0.01  # of probability: by as much a per-instance adversary may change a prediction
CLASSIFIERS = "binary classification by a BiLSTM with additive attention"
ANOTHER = (
    "it speaks for neither side: attention that a search has moved far away, with the same prediction, guides nearly "
    "as well on made-up reviews (F1 .938, the base's .956, equal weights .739)"
)
BY_EQUAL = "It speaks for neither side: on sst equal weights, which know nothing, are as much better a guide"
NEWS = ("20news", "agnews")  # which the paper leaves out after section 3.2: equal weights do as well there
MOVED = f"only adversaries count that have converged, are {FAR} nats away on dev, and whose imitation (lambda 0) works"


def claim(short: str, sentence: str, source: str, kind: str, bound: float, unit: str, **more) -> Claim:
    """A claim of this paper, or ours; its scope by default all that the paper tests, its question the paper's own."""
    usual = {"scope": CLASSIFIERS, "question": "needed" if "speaks" in more else ""}
    return Claim(KEY, short, sentence, source, kind, bound, unit, **usual | more)


CLAIMS = {
    one.short: one
    for one in (
        claim(
            "attention is needed",
            "Learned attention classifies better than equal weights do",
            "section 3.2, table 2; the paper too finds little or none on AG News, 20 Newsgroups and SST",
            "direction",
            MATTERS,
            "F1",
            control="the same model with equal weights, of the same seed, is what no attention gives",
            refuted="equal weights are as good, or better: attention is no explanation where it is not needed",
            sides=("learned", "uniform"),
            speaks="for",
            refuted_by_none=True,
        ),
        claim(
            "seeds move attention less",
            "Training with another seed changes attention less than a search for each text's adversary does",
            "section 3.3, figure 3; in Diabetes' negative texts the paper finds that seeds move it far too",
            "direction",
            NATS,
            "nats",
            control="attention that is uniform in every seed would not move at all: it has no verdict. Other seeds' "
            "weights, shuffled within each text, are .64 nats away on 20news, farther than the search finds, but .30 "
            "on sst, where texts are short: there seeds that attend at random would pass too. It speaks for neither "
            "side: attention is the more stable, and the adversary the easier to find",
            refuted="other seeds move it as far, so that the adversary's distance is nothing unusual",
            sides=("search", "other seeds"),
            proves_little=True,
        ),
        claim(
            "attention is robust to the seed",
            "The attention of other seeds is closer to the base's than equal weights are",
            "section 3.3, figure 3 c",
            "direction",
            NATS,
            "nats",
            scope=f"SST, which the paper finds surprisingly robust; {CLASSIFIERS}",
            control="equal weights, which no seed has to learn. It speaks for neither side: that training finds the "
            "same attention again does not say that no other would do",
            refuted="other seeds attend no more alike than to any word",
            sides=("equal weights", "other seeds"),
        ),
        claim(
            "robustness differs by class",
            "Other seeds move the attention more in negative texts than in positive ones",
            "section 3.3, figure 3 d",
            "direction",
            NATS,
            "nats",
            scope=f"Diabetes; {CLASSIFIERS}",
            control="the same models, texts and seeds: classes alone differ",
            refuted="both classes are as robust, or the positive one less",
            sides=("negative", "positive"),
        ),
        claim(
            "its attention guides",
            "The base's attention guides an MLP better than equal weights",
            "section 3.4, table 3",
            "direction",
            MATTERS,
            "F1",
            control=f"equal weights, the guide that knows nothing; {ANOTHER}",
            refuted="the MLP does as well, or better, with equal weights",
            sides=("base's", "equal"),
        ),
        claim(
            "better than learned",
            "An MLP does better with the base's attention than with its own",
            "section 3.4, table 3",
            "direction",
            MATTERS,
            "F1",
            control=f"the MLP's own attention, which has seen the same labels; {ANOTHER}",
            refuted="the MLP does as well, or better, with its own",
            sides=("base's", "its own"),
        ),
        claim(
            "an MLP's own attention beats equal weights",
            "An MLP with attention of its own is better than one with equal weights",
            "section 3.4, table 3",
            "direction",
            MATTERS,
            "F1",
            control="equal weights, the guide that knows nothing",
            refuted="the MLP does as well, or better, with equal weights",
            sides=("its own", "equal"),
            speaks="for",
            refuted_by_none=True,
        ),
        claim(
            "attention matters more than the encoder",
            "An MLP guided by the base's attention is better than a BiLSTM with equal weights",
            "section 3.4",
            "direction",
            MATTERS,
            "F1",
            control="a BiLSTM that reads context and has no attention of its own. It speaks for neither side: the "
            "attention that guides the MLP comes from a BiLSTM",
            refuted="context without attention is worth as much, or more",
            sides=("guided MLP", "uniform BiLSTM"),
        ),
        claim(
            "adversaries misguide",
            "The base's attention is a better guide than a trained adversary's",
            "section 4, table 3; Anemia is the paper's exception",
            "direction",
            MATTERS,
            "F1",
            control=f"imitation alone as the guide, shown as contrast; {MOVED}. {BY_EQUAL}",
            refuted="an adversary's attention guides as well, or better",
            sides=("base's", "adversary's"),
            proves_little=True,
        ),
        claim(
            "adversaries per instance misguide",
            "The base's attention is a better guide than the per-instance adversary's",
            "ours",
            "direction",
            MATTERS,
            "F1",
            control=f"the same MLP and texts: the guides alone differ. {BY_EQUAL}",
            refuted="the per-instance adversary's guides as well, or better",
            sides=("base's", "per-instance adversary's"),
            proves_little=True,
        ),
        claim(
            "a trained adversary is on par",
            f"A trained adversary is {FAR} nats away and classifies as well as the base, to {ON_PAR} of F1",
            "section 4, table 4",
            "most runs",
            FAR,
            "nats",
            scope=f"{CLASSIFIERS}; lambda as in table 4, or chosen on dev in each seed",
            control="imitation alone (lambda 0) reaches the base's F1 and is nearer; each run is judged by itself",
            refuted="most runs stay nearer, or lose more",
            speaks="against",
            question="alone",
        ),
        claim(
            "a search per text goes further than one model",
            "For the same change of predictions a search per instance goes further than one model for all texts",
            "section 4, figure 5",
            "direction",
            NATS,
            "nats",
            control="both at the same mean TVD, in each seed; none where the trained curve does not reach it. What "
            "imitation alone (lambda 0) costs is subtracted from the trained curve",
            refuted="one model for all texts goes as far at that TVD",
            sides=("search per instance", "trained"),
            speaks="for",
            question="alone",
        ),
        claim(
            "attention is easily moved",
            "The curve of TVD over JSD is convex: attention moves before the prediction does",
            "section 4, figure 5",
            "direction",
            PRICE,
            "TVD below the chord",
            control=f"a straight line, each step at the same price; curves start at lambda 0 and end beyond {FAR} "
            "nats. It speaks for neither side: runs that minimise TVD less lambda times KL find only the convex parts "
            "of a front, and JSD ends at ln 2, so that any curve bends up before it",
            refuted="the curve is concave: the first steps away cost most",
            proves_little=True,
        ),
        claim(
            "uniform lies under the curve",
            "Equal weights change predictions less than a trained adversary at their distance",
            "section 4, figure 5",
            "direction",
            PRICE,
            "TVD",
            scope=f"SST; {CLASSIFIERS}",
            control="both at the same mean JSD, in each seed; none where the trained curve does not reach it. It "
            "speaks for neither side: equal weights learn labels, adversaries to imitate, which has a price of its own",
            refuted="a trained adversary as far away changes predictions no more",
            sides=("trained", "uniform"),
        ),
        claim(
            "an adversary leaves the reason",
            "A trained adversary takes attention off the words that decide the label",
            "ours",
            "direction",
            0.05,
            "of the attention",
            scope="texts whose deciding words are known",
            control=f"imitation alone (lambda 0), trained anew in the same way; {MOVED}",
            refuted="as much attention stays on them",
            sides=("imitation", "adversary"),
        ),
    )
}
