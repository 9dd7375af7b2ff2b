"""The user's program under observation: starting it as Python does, and attaching to the frameworks it imports."""
