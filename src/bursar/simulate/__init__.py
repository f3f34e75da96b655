"""What a policy would mean for its analysts, tried on people who do not exist.

`mix` says what is asked, `order` in which order it is answered, `trial` asks it of a real engine, `compare` puts
policies side by side by the `measures` of Multi-Analyst DP, `plot` draws them.
"""
