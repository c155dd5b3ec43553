"""List the experiments of the functional-BNN paper."""
