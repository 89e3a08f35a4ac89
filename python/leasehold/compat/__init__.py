"""Locks with the interfaces of other libraries, on leases, for migrating one worker at a time."""
