"""The experiments of the functional-BNN paper."""
