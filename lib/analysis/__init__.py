"""From a model and its texts to a table with one row per instance; then means, differences and trends of its rows."""

from lib.analysis.adversaries import (
    adversaries_by_dev,
    adversary_method,
    changes_of_score,
    instance_adversaries,
    measure_versus_base,
    not_converged,
    seed_distances,
    select_runs,
    single_runs,
)
from lib.analysis.baseline import against_baseline, baseline, same_answers
from lib.analysis.correlation import correlate, significance, taus_by_option, trend, with_ceiling
from lib.analysis.dev import best_epochs, chosen_values, describe_ends, dev_scores, train_grid
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
from lib.analysis.measuring import attention_weights, examples, joined, left_out, max_attention, measure, measure_all
from lib.analysis.price import curvatures, points, price_difference, prices
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
from lib.analysis.word_states import information
