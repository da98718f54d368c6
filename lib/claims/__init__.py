"""What the papers claim, held against our numbers: a module a paper."""

from lib.claims.adversary import adversary_claims
from lib.claims.claim import Claim, sentences, table
from lib.claims.correlation import correlation_claims
from lib.claims.erasure import erasure_claims
from lib.claims.regularization import regularization_claims
from lib.claims.sparsity import sparsity_claims

__all__ = [
    "Claim",
    "adversary_claims",
    "correlation_claims",
    "erasure_claims",
    "regularization_claims",
    "sentences",
    "sparsity_claims",
    "table",
]
