# SPDX-License-Identifier: Apache-2.0
"""An authority, a certificate for localhost and one for a client, in PEM files of a folder."""
import subprocess


def make(directory):
    def openssl(arguments):
        subprocess.run(["openssl", *arguments.split()], cwd=directory, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key "
            "-out ca.pem")
    for name in ("localhost", "client"):
        openssl("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={0} -addext subjectAltName=DNS:{0} "
                "-keyout {0}.key -out {0}.csr".format(name))
        openssl("x509 -req -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy -in {0}.csr "
                "-out {0}.pem".format(name))
