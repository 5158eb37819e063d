# pack once, unpack to node-local storage at the start of the job
tar --create --file samples.tar samples/
srun --ntasks-per-node=1 tar --extract --file samples.tar --directory "$TMPDIR"
