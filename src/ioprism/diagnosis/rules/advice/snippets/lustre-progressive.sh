# a progressive layout: small files take one target, large ones are spread as they grow
lfs setstripe -E 4M -c 1 -E 1G -c 4 -E -1 -c {stripe_count} -S {stripe_size} {directory}
