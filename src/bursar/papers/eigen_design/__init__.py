"""Eigen-Design (Li and Miklau, VLDB 2012): the published bases."""
