"""From a model and its texts to a table with one row per instance; then means, differences and trends of its rows."""

from lib.analysis.adversaries import (
    adversaries_by_dev,
    adversaries_of_texts,
    distance_beyond_seeds,
    farthest_or_chosen,
    instance_adversaries,
    lost_beyond_imitation,
    measure_versus_base,
    moved_adversaries,
    not_converged,
    points,
    points_by_variant,
    scores_and_distances,
    searches,
    seed_distances,
    select_runs,
    summarise_adversaries,
)
from lib.analysis.baseline import against_baseline, baseline, same_answers
from lib.analysis.correlation import correlate, trend, trends
from lib.analysis.dev import chosen_values, dev_scores, train_grid, training_table
from lib.analysis.erasure import (
    add_drawn,
    add_flips,
    add_optimality,
    add_sooner,
    box_medians,
    common_support,
    compare_top_gaps,
    erasure_steps,
    flip_tables,
    flips_sooner,
    item_names,
    ranking_rows,
    sooner_ratio,
    sooner_signs,
    top_gaps,
    weights_on_words,
)
from lib.analysis.measuring import (
    attention_weights,
    examples,
    joined,
    left_out,
    max_attention,
    measure,
    measure_all,
    output_of_text,
)
from lib.analysis.rationale import (
    add_average_precision,
    add_rationale_hits,
    attention_on_rationale,
)
from lib.analysis.summaries import (
    classification,
    difference,
    effects_between,
    fragility,
    mean_effect,
    per_group,
    rows_where,
    summarise,
    summarise_by,
)
from lib.analysis.token_values import add_entropies, add_support, add_violations, violation_by_chance
from lib.analysis.word_states import information
