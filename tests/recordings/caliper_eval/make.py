"""How the files beside this one were made: by the real `caliper run` of each version, with the scripted agent of tests/interop.

    python tests/recordings/caliper_eval/make.py            # all versions, from the package index
    python tests/recordings/caliper_eval/make.py 0.21.0     # one

Nothing is changed in them but the directory they were made in, which becomes /project.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "interop"))

import foreign  # noqa: E402

RUNS = {
    "0.3.0": (("run", ("--baseline",)),),
    "0.4.0": (("run", ("--baseline",)),),
    "0.9.0": (("run", ("--baseline",)),),
    "0.10.0": (("run", ()), ("ablated", ("--ablate", "greeter"))),
    "0.15.0": (("run", ()),),
    "0.21.0": (("run", ()), ("ablated", ("--ablate", "greeter"))),
}


def main(versions: list[str]) -> None:
    for version in versions or RUNS:
        for name, options in RUNS[version]:
            with tempfile.TemporaryDirectory() as scratch:
                project = Path(scratch).resolve() / "project"
                made = foreign.made_by(version, project, "--timeout", "2", *options)
                text = made.read_text(encoding="utf-8").replace(str(project), "/project")
            target = HERE / version / f"{name}.json"
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
