"""Static figures for papers: what can be drawn (catalogue), with what (canvas), and each of them."""
