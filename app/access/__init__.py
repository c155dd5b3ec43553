"""Control access: hosts and origins, tokens, roles, headers, and the messages that a browser may send."""
