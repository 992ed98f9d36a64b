"""Which names name a secret: `DB_PASSWORD`, `x-api-key` and `clientSecret` do, `max_tokens` does not."""

from __future__ import annotations

import re
from functools import lru_cache

from toolfault.redact.spans import words

_WORD = re.compile(
    r"[\x80-\xff]+(?:[a-z]*[\x80-\xff]+)*|[A-Z]+(?![a-z])|[A-Z]?[a-z]+(?:[\x80-\xff]+[a-z]*)*|[0-9]+"
)

#: one word, whatever the case and the dashes
_COMPOUND = re.compile(r"(?i:pass[ _.-]?(?:word|phrase|code|wd)s?|api[ _.-]?keys?)(?![a-z])")

_PASSWORD = words(
    "password passwords passwd passwds passphrase passcode passwort kennwort pwd pw psw passw pword "
    "contrasena senha motdepasse requirepass masterauth userpass storepass keypass mnemonic"
)
#: in the byte-per-character form that the scan works on
FOREIGN = [
    word.encode().decode("latin-1")
    for word in (
        "пароль",
        "Пароль",
        "ПАРОЛЬ",
        "密码",
        "密碼",
        "パスワード",
        "비밀번호",
        "κωδικός",
        "hasło",
        "contraseña",
    )
]
_SECRET = words("secret secrets credential credentials creds cred verifier assertion samlresponse")
_TOKEN = words("token jwt bearer csrf xsrf tok accesstoken authtoken refreshtoken idtoken")
_API_KEY = words(
    "apikey apikeys accesskey secretkey privatekey authkey accountkey sharedaccesskey appkey "
    "signingkey encryptionkey subscriptionkey masterkey servicekey licensekey"
)
_PIN = words("otp totp pin cvv cvv2 cvc cvc2 ssn")
_SESSION = words(
    "jsessionid phpsessid sessionid sessid csrftoken csrfmiddlewaretoken aspsessionid connectsid"
)

#: word -> kind, told by the end of a word so that `PGPASSWORD` and `dbpassword` are known too.
_KINDS = (
    dict.fromkeys((*_PASSWORD, *FOREIGN), "password")
    | dict.fromkeys(_SECRET, "secret")
    | dict.fromkeys(_TOKEN, "token")
    | dict.fromkeys(_API_KEY, "api_key")
    | dict.fromkeys(_PIN, "pin")
    | dict.fromkeys(_SESSION, "cookie")
    | {"authorization": "authorization", "cookie": "cookie", "cookies": "cookie"}
)
_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "pwd",
    "secret",
    "token",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
)
#: a `key` or `code` is a secret only of these
_KEY_OF = words(
    "api access secret private account auth client encryption encrypt decrypt decryption signing sign "
    "master shared storage app application subscription license ssh rsa hmac webhook admin root "
    "deploy functions function consumer service crypto aes jwt session pgp gpg tls ssl cipher"
)
_CODE_OF = words("auth authorization device verification backup recovery otp mfa 2fa sms")
_NOT_PASS = words("bypass compass encompass trespass surpass overpass underpass impass")
#: as the first word they make it a function: "get_token: timed out" says nothing about the value
VERBS = words(
    "create get list delete rotate generate verify validate check change forgot fetch request revoke issue submit reset "
    "invalid missing parse read load find has is set update send expire encrypt decrypt hash"
)
#: as the last word they speak about the secret instead of holding it
_ABOUT = words(
    "type types count counts limit limits max min length len name names url urls uri uris endpoint expiry expires "
    "expire expired expiration ttl policy policies budget usage used total required field fields format "
    "algorithm alg size page index position id ids path file dir directory version versions status state "
    "error errors valid validation validator rotation manager provider encoding window context kind "
    "source ref arn label hint strength changed updated created at enabled disabled is in for on by method "
    "methods scheme age days hours seconds minutes ms rate class counter cost price per available "
    "remaining requirements rules exists set hasher input prompt store scope scopes audience issuer "
    "management santa sharing detector engine bucket stdin service server"
)
#: before the word they make it a count, a cursor or a piece of grammar
_BEFORE = words(
    "max min total num count prompt completion input output cached reasoning unexpected next page previous prev "
    "continuation cursor stop special pad eos bos unk sep cls mask public per no without nb thinking audio text "
    "syntax illegal missing expected pagination sync resume delta lock fencing idempotency client_request"
)


def _joined(compound: re.Match[str]) -> str:
    return "_" + re.sub(r"[ _.-]", "", compound[0]).lower() + "_"


def _of_word(word: str) -> str | None:
    kind = _KINDS.get(word)
    if kind:
        return kind
    for ending in (*_ENDINGS, *FOREIGN):
        if word.endswith(ending):
            return _KINDS[ending]
    return None


def _of_pair(before: str, word: str) -> str | None:
    if word in ("key", "keys") and before in _KEY_OF:
        return "api_key"
    if word == "code" and before in _CODE_OF:
        return "oauth_code"
    if word == "response" and before == "saml":
        return "secret"
    if word == "phrase" and before in ("pass", "seed", "recovery"):
        return "password"
    return None


def _of_last(word: str) -> str | None:
    """`SSHPASS` and `x-auth`: too common inside a name, telling at its end."""
    if word.endswith("pass") and word not in _NOT_PASS:
        return "password"
    return "authorization" if word == "auth" else None


@lru_cache(maxsize=4096)
def kind_of(key: str) -> str | None:
    """The class of what `key` holds (`password`, `token`, ...), or None if it is no secret."""
    words = [
        w.lower() if w.isascii() else w for w in _WORD.findall(_COMPOUND.sub(_joined, key[-200:]))
    ]
    for at in range(len(words) - 1, -1, -1):
        before = words[at - 1] if at else ""
        kind = _of_word(words[at]) or _of_pair(before, words[at])
        if kind is None and at == len(words) - 1:
            kind = _of_last(words[at])
        if kind and not _is_about(words, at):
            return kind
    return None


def _is_about(words: list[str], at: int) -> bool:
    last = words[-1]
    if at < len(words) - 1 and last in _ABOUT:
        return True
    return any(word in _BEFORE for word in words[:at])


def is_function(key: str) -> bool:
    """Whether `key` reads as the name of a function (`reset_password`)."""
    first = _WORD.search(key)
    return first is not None and first[0].lower() in VERBS and first.end() < len(key)


def is_secret_key(key: str) -> bool:
    """Whether a value under `key` must not be shown, whatever it looks like."""
    return kind_of(key) is not None
