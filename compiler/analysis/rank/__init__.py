"""One rank of a job that is not here: what its step takes, on several streams."""
