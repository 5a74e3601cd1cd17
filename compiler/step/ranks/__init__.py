"""What ranks agree on: the plan of a graph when it is compiled, and the plan of a step."""
