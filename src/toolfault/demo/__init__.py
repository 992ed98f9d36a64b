"""A scheduling agent whose tools fail in every way, and the stage it plays on."""
