# the block size that requests should be multiples of
mmlsfs all -B
