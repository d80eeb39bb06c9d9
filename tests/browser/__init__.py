"""Tests in a browser against the running site. Run by `make test-browser`, apart from all others."""
