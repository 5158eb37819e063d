"""Words for the causes of a diagnosis: titles, advice with values of the log, symptoms."""
