# new files in this folder lie on {stripe_count_words}, in stripes of {stripe_size}
lfs setstripe -c {stripe_count} -S {stripe_size} {directory}
lfs getstripe {directory}
