"""Look-up: pages, JSON API and the card for the terminal."""
