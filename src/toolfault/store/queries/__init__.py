"""What is asked of the store: every read statement named, every result a frozen row.

Nothing above the store sees a session or writes SQL of its own.
"""
