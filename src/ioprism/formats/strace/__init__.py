"""What `strace -f -ttt -T` writes: the system calls of a program and its children."""
