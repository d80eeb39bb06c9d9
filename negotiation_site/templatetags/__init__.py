"""What templates may call beyond Django's own."""
