r"""Default noise levels, cut-points and their priors, each with its reason.

Variances and widths are in (squared) units of the latent function, whose own default prior is in
`botorch_skewgp.models.defaults`; `LogNormal(location, spread)` priors are given by these two numbers.
"""

# Labels, grades and comparisons only tell the latent function relative to their noise: fixing that gives it a unit.
JUDGEMENT_NOISE = 1.0
# What fails tends to fail again: the edge of what works is ten times as sharp as that of labels.
VALIDITY_NOISE = 0.01
# A slope is stated because it is known, by a law of nature or by what is wanted of the function.
SLOPE_NOISE = 0.0
# Beside numbers, which fix the scale of the latent function, the noise variance of labels and comparisons is learned,
# from the same start as that of numbers:
# a median of e^-2 = 0.14 of a standardised number's variance, and a spread wide enough for 0.01 as for 2.
ANCHORED_NOISE, ANCHORED_NOISE_PRIOR = 0.1, (-2.0, 1.5)
# Of standardised numbers, the prior of BoTorch's SingleTaskGP: a median of 0.02, mostly between 0.003 and 0.13. Fits
# start high, at a tenth of the variance: those that start with too little noise stay with a function that explains it.
NUMERIC_NOISE, NUMERIC_NOISE_PRIOR = 0.1, (-4.0, 1.0)
# Two items tie within half the noise of one of them, as then 28 % of the duels between equals do; a learned width
# has a median of 0.37, and may well be a fifth or five times of that.
TIE_WIDTH, TIE_WIDTH_PRIOR = 0.5, (-1.0, 1.0)
# Of the logarithms of judges' widths around that of their common one: two thirds of judges are within a factor of 2.
TIE_WIDTH_SPREAD = 0.7
# The gap between cut-points is about the noise that blurs them; without a prior the gap of an unused grade vanishes.
GAP_PRIOR = (0.0, 1.0)
# Steps of "a little" and "much" better are about as wide as an item's noise, which is what a first fit starts from.
STRENGTH_GAP = 1.0
# Of a rate of slips that is learned: most judges slip in a few of a hundred answers, and some answer at random. So the
# odds of a slip have a half-Cauchy prior: a median of 1 to 20, and a rate above one half in 3 %.
SLIP_START, SLIP_ODDS_SCALE = 0.02, 0.05
# Between "both bad" and "both good" lies about as much as between two grades.
LEVEL_GAP = 1.0
