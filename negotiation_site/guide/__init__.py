"""A strategy guide for players: what openings and concessions came away with here, from the stored games."""
