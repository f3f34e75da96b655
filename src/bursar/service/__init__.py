"""The server: a wall around a data set, and the doors in it.

people.py     who may come in: roles, and tokens of which only a digest is kept
datasets.py   the data sets that a process serves, each opened once
"""
