"""Compiled graphs after Dynamo is done with them: compiled again with another plan, and their nodes in autograd."""
