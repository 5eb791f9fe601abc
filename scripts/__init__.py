"""What the repository makes for itself."""
