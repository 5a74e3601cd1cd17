"""Calls of compiled graphs as they run: the ledger, the phases it knows, and what it records of the others."""
