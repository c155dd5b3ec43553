"""Race several samplers on one target with one budget of gradients."""
