"""The server: a wall around a data set, and the doors in it.

people.py     who may come in: roles, and tokens of which only a digest is kept
openid.py     accounts at a provider of log-ins, in place of tokens
datasets.py   the data sets that a process serves, each opened once
wall.py       what every request passes: tokens, limits (request_limits.py), the journal (journal.py)
access.py     which role a route needs
app.py        door 1, HTTP: routes.py, owner_routes.py, and job_routes.py for what takes long (jobs.py)
bodies.py, replies.py, answer_formats.py, errors.py   what goes in and what comes out; manual.py shows it at /docs
run.py        `bursar serve`: sockets, processes, the end
"""
