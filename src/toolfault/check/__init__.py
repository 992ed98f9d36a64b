"""`toolfault check`: whether what an agent sends from here arrives, and can be looked up."""
