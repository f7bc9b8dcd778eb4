"""The figures of the paper and of this project: ``python -m figures list | NAME... | all``."""
