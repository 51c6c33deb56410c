"""What is faster than what: ratios of CPU time, measured side by side by ``make bench``."""
