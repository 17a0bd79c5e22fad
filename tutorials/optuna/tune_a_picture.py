"""A person tunes a picture on optuna-dashboard's page, or goes on doing so: python tune_a_picture.py FOLDER PORT."""

import os
import sys
import threading
import time

import numpy as np
from matplotlib.image import imsave
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna_dashboard import register_preference_feedback_component, run_server
from optuna_dashboard.preferential import create_study

from botorch_skewgp.optuna import SkewGPSampler

RANGES = {"exposure": (0.3, 3.0), "warmth": (-1.0, 1.0), "haze": (0.0, 1.0)}


def picture(exposure: float, warmth: float, haze: float) -> np.ndarray:
    y, x = np.mgrid[0:1:200j, 0:1:300j][..., None]  # an evening among hills, as a filter shows it
    scene = np.where(y > 0.55 + 0.1 * np.sin(9 * x), [0.2, 0.4, 0.3] * (1.4 - y), [1, 0.6, 0.3] + y * [-0.5, -0.2, 0.4])
    return np.clip((scene + haze * (0.8 - scene)) ** (1 / exposure) * (1 + warmth * np.array([0.5, 0, -0.5])), 0, 1)


if __name__ == "__main__":
    os.makedirs(folder := sys.argv[1], exist_ok=True)
    storage, sampler, store = f"sqlite:///{folder}/study.db", SkewGPSampler(seed=0), FileSystemArtifactStore(folder)
    study = create_study(n_generate=2, storage=storage, study_name="hills", sampler=sampler, load_if_exists=True)
    register_preference_feedback_component(study, "artifact", artifact_key="picture")
    threading.Thread(target=run_server, args=(storage, "localhost", int(sys.argv[2]), store), daemon=True).start()
    print(f"judge on http://localhost:{sys.argv[2]}/dashboard", flush=True)
    while len(study.preferences) < 20:
        if study.should_generate():
            trial = study.ask()
            imsave(file := f"{folder}/new.png", picture(**{n: trial.suggest_float(n, *RANGES[n]) for n in RANGES}))
            artifact = upload_artifact(artifact_store=store, file_path=file, study_or_trial=trial)
            trial.set_user_attr("picture", artifact)
        time.sleep(0.2)
    print("liked best:", study.best_trials[0].params)
