"""Runs for task queues, schedulers and frameworks: work that is done once although several machines begin it."""
