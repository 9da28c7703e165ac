"""Every variant of the fencing protocol by name, in the order of the printed table."""

from tests.model import lane_variants, variants
from tests.model.variants import Variant

VARIANTS: dict[str, Variant] = (
    variants.DESIGNS
    | variants.CLAIM_LOG_MUTANTS
    | variants.HAZARDS
    | variants.ENGINE
    | variants.SPARE
    | variants.LIGHT_STEP_MUTANTS
    | variants.REFUSED_MUTANTS
    | lane_variants.LANES
    | lane_variants.SPARE
    | lane_variants.MUTANTS
)
