"""The live service: watches running jobs and says when their next phase is due."""
