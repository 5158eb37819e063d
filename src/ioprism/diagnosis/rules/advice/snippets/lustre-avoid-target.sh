# where the files lie; then a folder whose new files keep off the slow target
lfs getstripe --recursive --yaml {directory}
lfs setstripe --stripe-count 1 --ost {other_targets} {directory}
