"""Calibrate from Python: time this machine's kernels, look at the fit, and plan with the profile.

    python examples/calibrate.py [FILE.json]

`autockpt calibrate` does the same from the command line and keeps the profile where it is found again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from autockpt.cost_models import calibrate
from autockpt.cost_models.profiles import profile_json


def main(path: str | None = None) -> None:
    calibration = calibrate("cpu", quick=True, progress=lambda text, done: print(f"{done:4d} {text}", file=sys.stderr))
    profile = calibration.profile
    for one in calibration.measurements:
        measured, fitted = one.seconds * 1e6, one.fitted_seconds(profile) * 1e6
        print(f"{one.family:24} {one.label:34} measured {measured:9.1f} µs, fitted {fitted:9.1f} µs")
    print(f"off by {profile.calibration['unseen_median_error']:.0%} in the median where nothing was fitted")
    for note in calibration.notes:
        print(note)
    if path:
        Path(path).write_text(profile_json(profile))
        print(f'torch.compile(model, backend="autockpt", options={{"device": "{path}"}})')


if __name__ == "__main__":
    main(*sys.argv[1:])
