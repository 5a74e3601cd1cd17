"""`autockpt bench plan`: the planner alone, on models that never run, published instances and synthetic graphs."""
