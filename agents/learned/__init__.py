"""Agents whose moves come from a small trained model: what they read and write, and how they are found."""
