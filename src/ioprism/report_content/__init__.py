"""What a report on one job holds, and the steps that gather it."""
