"""What a graph needs and what a plan does to it. Nothing here knows Dynamo, Inductor, files or a terminal."""
