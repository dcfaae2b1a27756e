"""The benchmark job: exactness, time and traffic of each kernel, as one result file."""
