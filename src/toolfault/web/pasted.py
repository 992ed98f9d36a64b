"""A part of an address that holds whatever somebody pasted."""

from starlette.convertors import Convertor, register_url_convertor


class Pasted(Convertor[str]):
    """Text of any kind: slashes, and unlike `path` line breaks too."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """The text as it came."""
        return value

    def to_string(self, value: str) -> str:
        """The text as it is."""
        return value


register_url_convertor("pasted", Pasted())
