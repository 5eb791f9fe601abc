"""Data sets from the user's own copy, verified to the byte. `python -m understudy.data` fetches MNIST."""
