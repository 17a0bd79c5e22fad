"""Real answers: held-out log densities of people's choices, grades and readings, beside the fields' standard models."""
