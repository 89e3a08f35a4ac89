"""Locks with the manners of other libraries, on leases, for moving over one worker at a time."""
