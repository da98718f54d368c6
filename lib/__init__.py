"""Is attention explanation? Models, attention, measures and interventions of five papers."""
