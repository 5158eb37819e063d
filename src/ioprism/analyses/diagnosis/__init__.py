"""What holds a job up, and what removing each cause would save.

The steps, one module each:

- `result.py`: the answer (`Diagnosis`, `Cause`, `Saving` …), plain data without wording;
- `observations.py`: a trace as `Observations`: the calls of the lowest layer as arrays (bounded),
  the calls of the layers above, metadata and sync seconds of each rank, layout and hosts;
- `io_phases.py`: one segmentation, and how long each phase holds the job up;
- `queues.py`: how much of a call's time a storage target is held exclusively;
- `late_ranks.py`: who keeps others waiting by computing: that is no I/O;
- `situation.py`: all of it together, with what calls cost and how to sum them up;
- one module per family of causes, each `find(situation) -> Iterator[Candidate]`;
- `attribution.py`: picks candidates so that no second is counted twice, and writes the ledger.

A `Candidate` has a code, a culprit, the seconds it saves in each phase (array), a low and a high
estimate of the sum, a p-value and a contrast. A new family (training, workflows) adds a module
with `find` and lists it in `diagnose.py`.
"""
