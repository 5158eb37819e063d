# let one process per node load libraries and Python modules for all (LLNL's Spindle)
spindle srun ./simulation
