"""The same causes from counters alone, without an array or a table library.

Most logs are small, and loading such a library takes longer than the diagnosis of one.
"""
