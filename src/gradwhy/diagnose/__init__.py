"""From a question and its flow graph to findings."""
