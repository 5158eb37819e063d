# pack once, unpack to node-local storage at the start of the job
tar --create --file NEW_ARCHIVE.tar samples/
srun --ntasks-per-node=1 tar --extract --file NEW_ARCHIVE.tar --directory "$TMPDIR"
