"""Define the secret of a server: a token in the printed address, or a password."""

from __future__ import annotations

import hashlib
import hmac
import secrets

# scrypt as RFC 7914 has it: 16 MiB and some 50 ms for each try.
_COST = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class Secret:
    """A token."""

    what = "token"

    def __init__(self, token: str | None = None) -> None:
        self.token: str | None = token or secrets.token_urlsafe(32)
        self.cookie = hmac.new(self.token.encode(), b"bnnviz cookie", hashlib.sha256).hexdigest()

    def opens(self, word: str) -> bool:
        """Return whether a word is the token."""
        return self.token is not None and _same(word, self.token)

    def is_shown(self, cookie: str, authorization: str) -> bool:
        """Return whether a cookie or an ``Authorization`` header shows the secret.

        It does not check passwords, since it runs for each script and each image.
        """
        if _same(cookie, self.cookie):
            return True
        kind, _, word = authorization.partition(" ")
        return kind.lower() in ("bearer", "token") and self.token is not None and self.opens(word.strip())


class Password(Secret):
    """The hash of a password."""

    what = "password"

    def __init__(self, password: str) -> None:
        super().__init__()
        self.token = None
        self._salt = secrets.token_bytes(16)
        self._hash = self._hashed(password)

    def opens(self, word: str) -> bool:
        """Return whether a word is the password; takes about 50 ms."""
        return hmac.compare_digest(self._hashed(word), self._hash)

    def _hashed(self, password: str) -> bytes:
        return hashlib.scrypt(password.encode(), salt=self._salt, **_COST)


def _same(word: str, other: str) -> bool:
    return hmac.compare_digest(word.encode(), other.encode())
