"""Encoders, attention and the classifiers that join them, with one interface: ModelOutput."""

from lib.models.attention import ATTENTIONS, WITH_QUERY
from lib.models.classifier import AttentionClassifier, GuidedClassifier, HierarchicalClassifier, QuestionClassifier
from lib.models.encoders import ENCODERS, HIERARCHICAL, QUESTION_ENCODERS, RETENTIONS, Concatenation, Residual
from lib.models.interface import AttentionModel, ModelOutput
