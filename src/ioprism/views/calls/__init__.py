"""What calls add up to: totals, sizes, access order, the longest of them."""
