# new files in this folder lie on 16 targets, in stripes of 4 MiB
lfs setstripe -c 16 -S 4M /path/to/output
lfs getstripe /path/to/output
