export DXT_ENABLE_IO_TRACE=1              # every read and write
export DARSHAN_MODMEM=64                  # MiB for records, so that none are dropped
srun ./simulation
