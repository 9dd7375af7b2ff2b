"""Values that leave a framework for NumPy or Python, and come back."""
