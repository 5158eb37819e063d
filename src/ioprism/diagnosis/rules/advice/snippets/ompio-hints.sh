# Open MPI's own MPI-IO (OMPIO) does not read ROMIO's hints
mpirun --mca io ompio --mca io_ompio_num_aggregators {cb_nodes} \
    --mca io_ompio_bytes_per_agg {cb_buffer_size} --mca fcoll vulcan ./simulation
