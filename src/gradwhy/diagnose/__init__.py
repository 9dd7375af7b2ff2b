"""From a question and its flow graph to findings."""

from gradwhy.diagnose.explain import explain

__all__ = ["explain"]
