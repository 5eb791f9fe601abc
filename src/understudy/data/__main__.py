"""Find MNIST, or fetch it into the cache, and say where it is."""

from understudy.data.mnist import mnist

print(f"MNIST is in {mnist(fetch=True).place}, verified.")
