# where the files lie; then a folder whose new files keep off the slow target
lfs getstripe --recursive --yaml /path/to/output
lfs setstripe --stripe-count 1 --ost 1,2,3 /path/to/output
