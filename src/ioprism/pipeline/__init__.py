"""One module per question: from paths to results, in the order of the steps, and only the order."""
