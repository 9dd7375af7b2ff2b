"""What we know about each framework. A backend is imported only when the program imports its framework."""
