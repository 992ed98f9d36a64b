"""Rules as data: what can be told only by the words around it, and the table of all rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from toolfault.redact import assignments, headers, material, places, programs
from toolfault.redact.keys import FOREIGN
from toolfault.redact.spans import Spans, View
from toolfault.redact.tokens import TOKENS


class Rule(NamedTuple):
    """A locator, what must be in the text for it to hit, and what to hide around a hit."""

    kind: str
    keywords: tuple[str, ...]
    pattern: str
    find: Callable[[View, int, int], Spans] | None = None  # the whole hit
    starts: tuple[str, ...] | None = (
        None  # what every hit begins with, if not a keyword; (): anything
    )
    folded: bool = True  # against the text in lower case
    also: str = ""  # a second word that must be there
    gate: str = ""  # for RE2, narrower than the keywords
    looks_ahead: bool = False  # the secret follows the hit
    is_message_only: bool = False  # a stack trace keeps its frames


_STEMS = (
    "pass", "pwd", "psw", "pword", "secret", "token", "key", "cred", "auth", "cookie", "sess", "sid", "sig", "jwt",
    "otp", "pin", "cvv", "cvc", "ssn", "bearer", "csrf", "xsrf", "saml", "assertion", "verifier", "code",
    "state", "kennwort", "senha", "contrase", "motdepasse", "mnemonic", "phrase", "masterauth", "nonce", "ticket",
    "accessid", "pw", *FOREIGN,
)  # fmt: skip


def _by_letter(words: tuple[str, ...]) -> str:
    """An alternation that tries each first letter once: `re` walks it for every character of the text."""
    letters: dict[str, list[str]] = {}
    for word in words:
        letters.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in letters.items())


#: What may follow a secret's name. `re` would try all endings behind each character of the name; RE2 has no look-ahead,
#: and no need of it.
AHEAD = r"(?=[\"'`\\&*=:<>|, \t\r\n\xe2\xef\]-])"
_ANY_STEM = f"(?:{_by_letter(_STEMS)})"
_STEM = _ANY_STEM + r"[a-z0-9_.$\x80-\xff-]{0,40}"
_QUOTE = r"(?:\\{0,4}[\"'`]|&quot;|\*{1,2})?"
_ASSIGN = (
    _STEM + AHEAD + r"(?:"
    + _QUOTE + r"(?:[, \t\r\n]{1,40}|[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}\{[ \t\r\n]{0,20})" + _QUOTE + r"(?:value|val)" + _QUOTE + r"[ \t]{0,2}[:=][ \t]{0,2}"  # name: key, value: v
    + r"|" + _QUOTE + r"(?:\\?\])?[ \t]{0,4}(?:=>|:=|={1,2}|:|->|<-|\xef\xbc[\x9a\x9d]|\xe2[\x86\x87]\x92)[ \t]{0,4}(?:\*{1,2}[ \t]{1,4})?"  # key = value
    + r"|\\{0,4}[\"'][ \t]{0,2},[ \t\r\n]{0,2}"  # ("key", value)
    + r"|" + _QUOTE + r"[ \t]{1,40}\|[ \t]{1,40}"  # | key | value |
    + r"|[\"'][ \t]{0,3}(?:\r?\n|\\r\\n){2}"  # multipart/form-data
    + r")"
)  # fmt: skip
_PAIR_LITERAL = r"[ ]{0,2}(?:\\{0,2}\"[^\"\n]{0,200}\"|'[^'\n]{0,200}')"

_SQL_UPPER = (
    r"\b(?:SELECT[ \t\n][^;]{1,300}?[ \t\n]FROM[ \t\n]|INSERT[ \t]+(?:IGNORE[ \t]+)?INTO[ \t]|REPLACE[ \t]+INTO[ \t]|MERGE[ \t]+INTO[ \t]"
    r"|UPDATE[ \t]+[^ \t\n]{1,100}[ \t\n]+SET[ \t\n]|DELETE[ \t]+FROM[ \t]+[^ \t\n]|(?:CREATE|ALTER)[ \t]+(?:USER|ROLE|LOGIN)[ \t]"
    r"|(?:CREATE|ALTER)[ \t]+TABLE[ \t]+[^ \t\n(]{1,100}[ \t\n]*\(|DROP[ \t]+TABLE[ \t]+[^ \t\n]|SELECT[ \t]+[a-z_.]{1,60}\(|VALUES[ \t\n]*\("
    r"|WHERE[ \t\n]+\\{0,2}[a-zA-Z_.\"`]{1,60}[ \t\n]*(?:[=<>!]|LIKE[ \t]|IN[ \t]*\()|WITH[ \t]+[a-z_]{1,60}[ \t]+AS[ \t]*\("
    r"|CALL[ \t]+[a-zA-Z_.]{1,60}\(|EXEC(?:UTE)?[ \t]+[a-zA-Z_.]{1,60}[ \t]+[@'])"
)
_NAME = r"[a-z0-9_.\"`\[\]]{1,80}"
_SQL_LOWER = (
    r"\b(?:select[ \t\n]+(?:\*|count\(|distinct )[^;]{0,200}?[ \t\n]?from[ \t\n]"
    r"|select[ \t\n][^;]{1,200}?[ \t\n]from[ \t\n]+"
    + _NAME
    + r"(?:[ \t]+(?:as[ \t]+)?[a-z]{1,3})?[ \t\n]+(?:where[ \t\n]+"
    + _NAME
    + r"[ \t\n]*(?:[=<>!]|like[ \t]|in[ \t]*\(|is[ \t])|(?:inner |left |right |cross )?join[ \t]|order by[ \t]|group by[ \t]|limit[ \t][0-9:?$])"
    r"|insert[ \t]+into[ \t]+"
    + _NAME
    + r"[ \t\n]*(?:\(|values)|update[ \t]+"
    + _NAME
    + r"[ \t\n]+set[ \t\n]+"
    + _NAME
    + r"[ \t]*="
    r"|select[ \t\n][^;]{1,200}?[ \t\n]from[ \t\n]+"
    + _NAME
    + r"[ \t]*;|delete[ \t]+from[ \t]+"
    + _NAME
    + r"[ \t\n]+where[ \t])"
)
_GAP = r"(?:\xc2\xa0|[ .+_-])?"
_DIGITS = f"[0-9]{{3}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}{_GAP}[0-9]{{1,4}}(?:{_GAP}[0-9]{{1,3}})?"
#: each alternative begins with one digit: `re` tries no other place
_CARD = "|".join(
    (f"3[0-9]{{3}}{_GAP}[0-9]{{6}}{_GAP}[0-9]{{4,5}}", *(first + _DIGITS for first in "23456"))
)
_PROGRAMS = (
    "mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "7z", "7za", "unzip", "zip",
    "docker login", "mongo", "mongosh", "mongodump", "az login", "plink", "pscp", "psexec",
)  # fmt: skip
_PORTS = "8080|8443|8000|8888|3000|5000|9090|4317|4318|15672|7000|5432|5433|6432|6379|6380|9092|9093|3306|27017|9200|9300|5672|2379|8500|8200|11211|1433|1521|2181|26379|50051|8123|9042|7687"

_OCTET = r"\.(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
_PRIVATE_V4 = (
    rf"\b(?:10{_OCTET}|172\.0?(?:1[6-9]|2[0-9]|3[01])|192\.168|169\.254|100\.(?:0?(?:6[4-9]|[7-9][0-9])|1(?:[01][0-9]|2[0-7])))"
    + _OCTET * 2
)
_AT_WORDS = ("pass", "secret", "token", "key", "credential", "pwd")
CONTEXT: tuple[Rule, ...] = (
    Rule("telegram_token", tuple(f"{digit}:" for digit in range(10)), r"[0-9]:(?:AA[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{30,})", material.telegram, folded=False),
    Rule("jwt", ("eyj",), r"eyJ[A-Za-z0-9_-]{6}", material.jwt, folded=False),
    Rule("private_key", ("-begin ", "--begin"), r"-{4,5}begin [a-z0-9 ]{0,40}private key(?: block)?-{0,5}", material.private_key, starts=("----",)),
    Rule("private_key", ("-end ",), r"-{4,5}end [a-z0-9 ]{0,40}private key(?: block)?-{0,5}", material.private_key_tail, starts=("----",)),
    Rule("private_key", ("putty-user-key-file",), r"putty-user-key-file-[0-9]:[^\n]*(?:\n[^\n]*)*"),
    Rule("email", ("@",), "@", places.at_sign),
    Rule("credentials", ("jdbc:oracle", "sqlplus"), r"(?:jdbc:oracle:[a-z]{2,5}:|sqlplus +(?:-[a-z]+ +){0,3})[^ \t\n/\"'@]{1,80}/[^ \t\n\"'@]{1,200}@"),
    Rule("secret", _STEMS, _ASSIGN, assignments.assignment, looks_ahead=True),
    Rule("secret", _STEMS, _ANY_STEM + r"[a-z0-9_.-]{0,40}" + AHEAD + r"[\"']?(?:[ \t\n][^<>\n]{0,80})?>", assignments.element, also="<"),
    Rule("secret", ("--", " -", "\"-", "'-", "env ", "arg ", "set ", "setx ", "export "),
         r"(?:-|\b(?:env|arg|setx?|export)[ \t]{1,3})[a-z0-9_.-]{2,60}[ \t]{1,3}", assignments.flag, starts=("-", "env", "arg", "set", "export"), looks_ahead=True),
    Rule("secret", _AT_WORDS, r"(?:" + "|".join(_AT_WORDS) + r")[a-z0-9_.-]{0,20}" + AHEAD + r"[\"']?(?:[ \t]{1,3}(?:provided|supplied|given|used|value|id|you|entered|sent|that|we|got|received)){0,3}(?:[ \t]{1,3}(?:is|was|of|by))?:?[ \t]{1,3}\(?", assignments.prose, looks_ahead=True),
    Rule("secret", ("input_value=", '"input"', "'input'"), r"(?:\binput_value=|[\"']input[\"'][ ]?:[ ]?)", assignments.rejected_input, starts=("input_value=", "\"input", "'input"), looks_ahead=True),
    Rule("openai_key", ("sk-",), r"\bsk-[A-Za-z0-9_-]{20,}", material.dashed_key, folded=False),
    Rule("password", tuple(f":{digit}" for digit in range(10)), r":[0-9]{4,5}:[a-z0-9_*-]{1,64}:[a-z0-9_-]{1,64}:[^ \t\r\n:\"']{4,}", material.after_last_colon),
    Rule("cookie", ("--cookie", " -b"), r"[ \t](?:--cookie|-b)[ =][\"']?[a-z0-9_.-]{1,80}=[^\r\n\"']+", starts=(" ", "\t")),
    Rule("bearer", ("bearer",), r"\bbearer(?:[ \t]{1,3}|%20|\+|:[ \t]?)", headers.bearer, looks_ahead=True),
    Rule("basic_auth", ("basic",), r"\bbasic(?:[ \t]{1,3}|%20|\+|:[ \t]?)", headers.basic, looks_ahead=True),
    Rule("cookie", ("<cookie ",), r"<cookie [^>\n]+"),
    Rule("credentials", tuple(bracket + after for bracket in "([" for after in (" ", "'", '"', "\\", "login=", "username=")), r"auth(?:entication|_basic)?[\"']?[ ]?(?:[=:][ ]?)?(?:[a-z.]{1,40})?[(\[](?:login=|username=)?" + _PAIR_LITERAL + r",[ ]?(?:password=)?" + _PAIR_LITERAL, programs.auth_pair, starts=("auth",)),
    Rule("credentials", ("-u", "--user", "--proxy-user", "'--user'"), r"(?:[ \t\"'\[(]-u|--(?:proxy-)?user)(?:[\"'],)?[ =]?", programs.user_flag, starts=(), looks_ahead=True),
    Rule("password", (" -p", "'-p"), r"\b(?:" + "|".join(_PROGRAMS) + r")\b[^\n|;]{0,200}?[ \t'\"]-p(?:[\"'],)?[ =]?", programs.short_password, starts=_PROGRAMS, looks_ahead=True),
    Rule("password", (" -p'", " -p\""), r"[ \t]-p[\"'][^\"'\n]{1,200}[\"']", starts=()),
    Rule("password", ("redis-cli", "ldapsearch", "ldapmodify", "ldapadd"), r"(?:redis-cli\b[^\n|;]{0,200}?[ \t](?:-a|--pass)|ldap(?:search|modify|add)\b[^\n|;]{0,200}?[ \t]-w)[ =]", programs.positional, looks_ahead=True),
    Rule("password", ("oauth2-bearer", "passin", "passout", "pass:"), r"(?:--oauth2-bearer[ =]|-pass(?:in|out)? pass:)", programs.positional, starts=("--oauth2-bearer", "-pass"), looks_ahead=True),
    Rule("password", ("identified by", "with password", "with encrypted password", "requirepass", "masterauth", "login ", "htpasswd"), r"(?:identified by(?: password)?|with (?:encrypted )?password|requirepass|masterauth|\blogin [^ \t\n]{1,80}[ \t\n]+password|htpasswd -b[a-z]* [^ \n]{1,80} [^ \n]{1,80})[ \t]{1,3}", programs.positional, starts=("identified by", "with ", "requirepass", "masterauth", "login ", "htpasswd"), looks_ahead=True),
    Rule("password", (" -u ",), r"[ \t]-u [a-z0-9_.\\-]{1,60}%[^ \t\n\"']{1,200}", starts=()),
    Rule("datadog_key", ("datadog", "ddog", "dd_", "dd-"), r"\b[0-9a-f]{32}(?:[0-9a-f]{8})?\b", material.datadog, starts=()),
    Rule("aws_key", ("aws", "akia", "asia", "secret", "amazon", "s3"), r"[A-Za-z0-9/+]{40,}", material.aws_secret, starts=(), folded=False),
    Rule("card", tuple("23456"), _CARD, places.card, starts=(), gate=r"[0-9]{3}[0-9 .+_\xc2\xa0-]{3}[0-9]{2}"),
    Rule("ip", ("10.", "172.", "192.168.", "169.254.", "100."), _PRIVATE_V4, places.address_v4),
    Rule("ip", ("fe8", "fe9", "fea", "feb", "fc", "fd"), r"\b(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}):[0-9a-f:]{1,40}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?", places.address_v6),
    Rule("host", (".int", ".local", ".corp", ".lan", ".svc", ".priv", ".consul", ".home", ".vpn"), r"\.(?:internal|local|localdomain|localnet|corp|lan|intranet|intra|svc|private|priv|consul|home|int|vpn)\b", places.host),
    Rule("host", ("internal.", "corp.", "intranet.", "intra.", "vpn.", "svc."), r"\b(?:internal|corp|intranet|intra|vpn|svc)\.[a-z0-9-]{1,63}\.[a-z]{2,}", places.host),
    Rule("host", ("host", "server at ", "server on ", "server=", "server =", "data source", "addr", "enotfound ", "eai_again ", "lookup ", "resolve ", "unknown host"), r"(?:\bhost(?:name|addr)?[\"']?[ ]?[=:][ ]?|\bhost name |\bhost |\bserver (?:at|on) |\b(?:server|data source|address|addr)[ ]?=[ ]?(?:tcp:)?|\b(?:enotfound|eai_again) |\blookup |\bresolve (?:host )?|\bunknown host:? )[\"'`]?", places.named_host, looks_ahead=True),
    Rule("host", ("://",), "://", places.named_host, looks_ahead=True),
    Rule("host", tuple(f":{port}" for port in _PORTS.split("|")), rf":(?:{_PORTS})\b", places.port_host),
    Rule("host", ("\\\\",), r"(?:[ \t\"'(=]|\A)\\\\(?:\\\\)?", places.named_host, starts=(), looks_ahead=True),
    Rule("user", ("/home/",), r"/home/", places.home, looks_ahead=True),
    Rule("user", ("~",), r"(?:[ \t\"'=(:]|\A)~[a-z_\x80-\xff]", places.tilde_home, starts=()),
    Rule("user", ("/users/",), r"/Users/", places.home, looks_ahead=True, folded=False),
    Rule("user", (":/users", ":/documents and settings", "\\users", "\\documents and settings", "\\home"), r"(?:[a-z]:(?:\\{1,4}|/)|\\{1,4})(?:users|documents and settings)(?:\\{1,4}|/)|\\{1,4}home\\{1,4}", places.windows_home, starts=(), looks_ahead=True),
    Rule("sql", ("select", "insert", "replace", "merge", "update", "delete", "create", "alter", "drop", "values", "where", " as (", "exec", "call "), _SQL_UPPER, programs.sql, starts=("select", "insert", "replace", "merge", "update", "delete", "create", "alter", "drop", "values", "where", "with", "call", "exec"), folded=False),
    Rule("sql", ("select", "insert", "update", "delete"), _SQL_LOWER, programs.sql),
    Rule("sql", ("sql", "query", "statement", "execut"), r"\b(?:sql|query|statement|executing|execute)[\"']?[ ]?[:=][ ]?[\"'\[(]{0,2}(?:select|insert|update|delete|with|call|exec|merge|replace)[ \t\n]", programs.sql),
    Rule("sql", ("parameters: $1",), r"parameters: \$1 = ", programs.failing_row, looks_ahead=True),
    Rule("sql", ("near ",), r"\bnear [\"'][^\n]{1,400}?[\"'] at line", programs.near),
    Rule("sql", ("line ",), r"\bLINE [0-9]{1,5}: ", programs.sql, folded=False),
    Rule("sql", ("[sql:", "[parameters:", "[generated in"), r"\[(?:sql|parameters): ?", programs.sql_bracket),
    Rule("sql", ("param", "bind"), r"\b(?:params|parameters|binds|bind variables|bind values|bindings|bound parameters)[\"']?[ ]?[=:]?[ ]?[\[({]", programs.sql_parameters, starts=("param", "bind", "bound param")),
    Rule("sql", ("key (", "duplicate entry", "duplicate key value is"), r"(?:\bkey \([^)\n]{1,200}\)=\(|\bduplicate entry '|duplicate key value is \()", programs.row_value, looks_ahead=True),
    Rule("sql", ("failing row contains", "row contains"), r"row contains \(", programs.failing_row, looks_ahead=True),
    Rule("stack", ('file "', 'file \\"'), r"File \\{0,2}\"[^\"\n]{1,300}\", line [0-9]{1,7}(?:, in [^\r\n\\]{1,200})?", programs.python_frame, starts=("file ",), folded=False, is_message_only=True),
    Rule("stack", (".java:", ".kt:", ".scala:", ".groovy:", "native method", "unknown source"), r"\bat [\w$.<>/@-]{3,300}\((?:[\w$ -]{1,100}\.(?:java|kt|scala|groovy|clj):[0-9]{1,7}|Native Method|Unknown Source)\)", starts=("at ",), folded=False, is_message_only=True),
    Rule("stack", (".js:", ".ts:", ".mjs:", ".cjs:", ".tsx:", ".jsx:", "node:"), r"\bat (?:async )?(?:[\w$.<>\[\] ]{1,100} )?\(?(?:file://|node:|/|[A-Za-z]:\\|webpack|https?://)[^ \t\r\n()]{1,300}:[0-9]{1,7}:[0-9]{1,7}\)?", starts=("at ",), folded=False, is_message_only=True),
    Rule("stack", (":line ",), r"\bat [\w.`<>\[\]+]{3,200}\([^)\n]{0,200}\) in [^\r\n]{1,300}?:line [0-9]{1,7}", starts=("at ",), folded=False, is_message_only=True),
    Rule("stack", (".go:",), r"(?:[\w./*()-]{1,200}\([^)\n]{0,200}\)\r?\n)?[ \t]*[\w./@-]{1,200}\.go:[0-9]{1,7} \+0x[0-9a-f]+", starts=(), folded=False, is_message_only=True),
    Rule("stack", (".rb:",), r"[\w./-]{1,200}\.rb:[0-9]{1,7}:in [`'][^'\n]{1,100}'", starts=(), folded=False, is_message_only=True),
    Rule("stack", (".php(",), r"#[0-9]{1,4} [^ \t\r\n(]{1,200}\([0-9]{1,7}\): [^\r\n\\]{1,300}", starts=("#",), folded=False, is_message_only=True),
    Rule("stack", (".rs:",), r"\bat [\w./-]{1,200}\.rs:[0-9]{1,7}(?::[0-9]{1,7})?", starts=("at ",), folded=False, is_message_only=True),
)  # fmt: skip


#: Tokens that do not begin with their keyword.
_STARTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("webhookb2/", "/incomingwebhook/"): ("webhook",),
} | dict.fromkeys((("q~",), ("==",), ("jqqj99",), (".atlasv1.",), ("-us",)), ())


@cache
def all_rules() -> tuple[Rule, ...]:
    """Tokens first: where two rules hide the same characters, the first one names the class."""
    tokens = (
        Rule(kind, words, pattern, starts=_STARTS.get(words), folded=False)
        for kind, words, pattern in TOKENS
    )
    return (*tokens, *CONTEXT)
