"""What is worth measuring: strategies, the queries whose noisy answers give a whole workload at the least price.

A workload is its Gram matrix V = W^T W over (merged) cells, a strategy a real matrix A over the same cells; what the
kernel measures is its integer form. One file per way to find a strategy, all plain functions of V.
"""
