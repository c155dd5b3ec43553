"""Decide who gets in: the hosts and origins that are answered, the token, the headers, the limits of messages."""
