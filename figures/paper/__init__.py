"""The figures of the paper and of this project, one file each."""
