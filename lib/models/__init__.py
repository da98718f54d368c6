"""Encoders, attention and the classifiers that join them, with one interface: ModelOutput."""

from lib.models.attention import ATTENTIONS, WITH_QUERY
from lib.models.classifier import (
    QUESTION_ENCODERS,
    AttentionClassifier,
    Displayed,
    GuidedClassifier,
    HierarchicalClassifier,
    QuestionClassifier,
)
from lib.models.encoders import ENCODERS, HIERARCHICAL, RETENTIONS, Concatenation, Residual
from lib.models.interface import AttentionModel, ModelOutput
