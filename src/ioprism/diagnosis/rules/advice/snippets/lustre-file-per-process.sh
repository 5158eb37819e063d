# one target per file is right when every process has its own file; -i -1 lets Lustre balance
lfs setstripe -c 1 -i -1 {directory}
