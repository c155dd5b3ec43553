"""Sample by adaptive importance sampling: populations of proposals."""
