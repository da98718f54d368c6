"""Encoders, attention and the classifier that joins them, behind one seam: ModelOutput."""

from lib.models.attention import ATTENTIONS
from lib.models.classifier import AttentionClassifier, GuidedClassifier
from lib.models.encoders import ENCODERS, HIERARCHICAL, RETENTIONS
from lib.models.hierarchical import HierarchicalClassifier
from lib.models.interface import AttentionModel, ModelOutput
from lib.models.question import ANSWERING, QuestionClassifier

__all__ = [
    "ANSWERING",
    "ATTENTIONS",
    "ENCODERS",
    "HIERARCHICAL",
    "RETENTIONS",
    "AttentionClassifier",
    "AttentionModel",
    "GuidedClassifier",
    "HierarchicalClassifier",
    "ModelOutput",
    "QuestionClassifier",
]
