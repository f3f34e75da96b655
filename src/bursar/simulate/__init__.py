"""What a policy would mean for its analysts, tried on people who do not exist.

`trial.py` says what is asked and asks it of a real engine; `compare.py` says in which order it is answered, puts
policies side by side by the measures of Multi-Analyst DP, and draws them.
"""
