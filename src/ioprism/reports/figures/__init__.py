"""Static figures for papers: which there are (catalogue), their style (canvas), and each one."""
