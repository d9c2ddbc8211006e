"""What serving needs, without a model: a soak of the parts for engines, latencies beside peers, and a simulation.

``python -m benchmarks.serving.soak`` keeps :mod:`grammarspec.serving` busy as an engine would (:mod:`.scheduler`);
``python -m benchmarks.serving.latencies`` measures the masks of batches with 1, 50 and 500 schemas; ``python -m
benchmarks.serving.simulation`` computes from measured costs how many sequences a host can serve.
"""
