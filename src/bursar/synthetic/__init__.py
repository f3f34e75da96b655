"""Large workloads and synthetic tables: what is measured once, so that millions of questions can be answered after.

Synthetic data are a table that stands for the real one, made of noisy values alone:

    made = db.synthesize()                          # free: of everything that was measured before
    made = db.synthesize(ways=2, spend=0.2)         # the data owner: every pair of columns, for epsilon 0.2
    print(made.report.summary())
    made.write("people.csv")
"""
