"""Methods of the founding papers that no default uses, kept to repeat their results and to compare with.

`dueling` has the challengers of the paper on preferences, `safety` the penalised bound of that on mixed observations.
"""
