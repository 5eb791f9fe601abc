"""Fetch MNIST into the cache."""

from understudy.compilation import cache_directory
from understudy.data.mnist import mnist

mnist(fetch=True)
print(f"MNIST is in {cache_directory() / 'data' / 'mnist'}, verified.")
