"""From a model and its texts to a table with one row per instance; then means, differences and trends of its rows."""

from lib.analysis.baseline import against_baseline, baseline, same_answers
from lib.analysis.correlation import correlate, significance, taus_by_option, trend, with_ceiling
from lib.analysis.curves import curvatures, points, price_difference, prices
from lib.analysis.erasure import (
    box_values,
    by_ranking,
    erased_on_rationale,
    flip_tables,
    flips_sooner,
    late_flips,
    on_common_support,
    versus_fewest,
    with_drawn,
    with_effects,
    with_flips,
    with_random,
)
from lib.analysis.histories import (
    adversaries_by_dev,
    at_an_end,
    best_epochs,
    by_recipe,
    dev_scores,
    not_converged,
    on_dev,
    recipe_effects,
    tried,
)
from lib.analysis.measuring import attention_weights, examples, joined, left_out, max_attention, measure, measure_all
from lib.analysis.summaries import (
    classification,
    difference,
    effects_between,
    fragility,
    mean_effect,
    per_group,
    summarise,
)
from lib.analysis.token_values import (
    attention_on_rationale,
    on_rationale,
    support_on_rationale,
    top_on_rationale,
    violation_by_chance,
    with_entropies,
    with_support,
    with_violations,
)
from lib.analysis.tradeoff import (
    across_seeds,
    adversary_method,
    as_adversaries,
    changes_of_score,
    measure_versus_base,
    of_runs,
    single_runs,
)
from lib.analysis.word_states import information
