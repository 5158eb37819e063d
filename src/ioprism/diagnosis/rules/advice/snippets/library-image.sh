# put modules and libraries into one file that is mounted on every node
mksquashfs {directory} modules.sqsh
srun --ntasks-per-node=1 squashfuse modules.sqsh "$TMPDIR/modules"
