# Cray MPICH reads hints from the environment, by file name pattern
export MPICH_MPIIO_HINTS="*:cb_nodes={cb_nodes}:romio_cb_write=enable:striping_factor={cb_nodes}:striping_unit={stripe_bytes}"
export MPICH_MPIIO_HINTS_DISPLAY=1
