"""Make the certificate of a cluster of this machine: its scheduler and workers refuse whoever does not have it.

A Dask scheduler runs what it is sent, and a port of 127.0.0.1 is open to every account of the machine. So scheduler,
workers and clients of one cluster share a key that is made for it, and prove to each other by TLS that they have it.
The key goes through pipes between a process and its children, and is on no command line and in no environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from bnnviz import optional
from bnnviz.errors import BnnvizError

#: Names a file with the key that clusters of this machine are to have: for who looks into one from another process.
FILE_VARIABLE = "BNNVIZ_CLUSTER_KEY"
_YEARS = 10  # a scheduler that is started again has the key of the one before
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"


class ClusterKey(NamedTuple):
    """Hold the private key of a cluster and the certificate that all of it trust, as PEM."""

    certificate: str
    key: str

    @classmethod
    def make(cls) -> ClusterKey:
        """Make a new key (ECDSA, P-256), with a certificate that it signs itself."""
        optional.require("cryptography", "Worker processes need")
        import datetime

        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "bnnviz cluster")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))  # a clock may be set back
            .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
            .sign(key, hashes.SHA256())
        )
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
        return cls(certificate.public_bytes(pem).decode(), private.decode())

    @classmethod
    def of_this_run(cls) -> ClusterKey:
        """Return a new key, or the one in the file that ``BNNVIZ_CLUSTER_KEY`` names."""
        path = os.environ.get(FILE_VARIABLE)
        return cls.read(Path(path)) if path else cls.make()

    @classmethod
    def read(cls, path: Path) -> ClusterKey:
        """Read what `write` has written."""
        try:
            with path.open(encoding="ascii") as file:
                info, text = os.fstat(file.fileno()), file.read()
        except (OSError, ValueError) as error:
            raise BnnvizError(f"The cluster's key {path} cannot be read ({error}); unset {FILE_VARIABLE}.") from error
        if info.st_mode & 0o077 or info.st_uid != os.getuid():
            raise BnnvizError(f"The cluster's key {path} is not yours alone; take it from others by chmod 600 {path}.")
        private, mark, certificate = text.partition(_CERTIFICATE)
        if not mark:
            raise BnnvizError(f"The file {path} holds no key of a cluster; unset {FILE_VARIABLE}.")
        return cls(mark + certificate, private)

    def write(self, path: Path) -> None:
        """Write it to a new file that nobody else reads."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(self.key + self.certificate)

    def security(self) -> Any:
        """Return what Dask needs to speak with this key, and with nobody without it."""
        from distributed.security import Security

        of_roles = {
            f"tls_{role}_{part}": value
            for role in ("client", "scheduler", "worker")
            for part, value in (("cert", self.certificate), ("key", self.key))
        }
        return Security(require_encryption=True, tls_ca_file=self.certificate, **of_roles)
