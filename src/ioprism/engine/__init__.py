"""Where views are computed: one machine or a cluster."""
