"""Messages as libraries write them, with planted secrets, and messages that only look like it.

Every secret is made up and put together at run time, so that repository scanners have nothing to find.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from toolfault.redact import cap
from toolfault.redact.engines import PythonEngine, Re2Engine
from toolfault.redact.scrubber import Scrubber

A40 = "Zq7Rk2Lm9Xw4Tb6Yv1Nc8Jh3Gd5Sf0Pa2Ue7Io4K"
OPENAI = "sk-" + "T3stFake" + A40[:32]
OPENAI_PROJ = "sk-" + "proj-" + "Fake_" + A40 + "-x9"
OPENAI_SVC = "sk-" + "svcacct-" + "Fake" + A40
ANTHROPIC = "sk-" + "ant-api03-" + "Fake" + A40 + "-AA"
GOOGLE = "AI" + "za" + "SyFake" + A40[:29]
GOCSPX = "GOC" + "SPX-" + "Fake" + A40[:24]
YA29 = "ya" + "29." + "a0Fake" + A40
AKIA = "AK" + "IA" + "FAKEIOSFODNN7EXA"
ASIA = "AS" + "IA" + "FAKEQOSFODNN7EXA"
AWS_SECRET = "wFake" + "rXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEK9"
AWS_SESSION = "IQoJ" + "b3JpZ2luX2VjEFake" + A40 * 2 + "=="
AZURE_ACCOUNT = "Fake" + (A40 * 3)[:82] + "=="
AZURE_CLIENT = "Fak8Q" + "~" + A40[:34]
GHP = "gh" + "p_" + "Fake" + A40[:32]
GHO = "gh" + "o_" + "Fake" + A40[:32]
PAT = "github" + "_pat_" + "11FAKE" + A40[:16] + "_" + A40
GLPAT = "gl" + "pat-" + "Fake-" + A40[:15]
XOXB = "xo" + "xb-" + "123456789012-1234567890123-Fake" + A40[:20]
SLACK_HOOK = "https://hooks." + "slack.com/services/T0FAKE000/B0FAKE000/Fake" + A40[:20]
STRIPE = "sk_" + "live_" + "Fake" + A40[:24]
STRIPE_RK = "rk_" + "live_" + "Fake" + A40[:24]
WHSEC = "wh" + "sec_" + "Fake" + A40[:28]
HF = "h" + "f_" + "FakeFakeFake" + "abcdefghijklmnopqrstuv"
NPM = "np" + "m_" + "Fake" + A40[:32]
PYPI = "py" + "pi-" + "AgEIcHlwaS5vcmcFake" + A40
SENDGRID = "S" + "G." + "Fake" + A40[:18] + "." + A40 + "abc"
TELEGRAM = "1234567890" + ":" + "AAFake" + A40[:29]
DATADOG = "fa4e" + "0123456789abcdef01234567" + "89ab"
DATADOG_APP = DATADOG + "01234567"
JWT = "ey" + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "ey" + "JzdWIiOiJmYWtlIn0." + "Fake" + A40
PEM_BODY = [
    "MIIEvFake" + A40 + "abcdefghijklmnopq",
    A40 + "/FakeABCDEFGHIJKLMNOPQR+T",
    "Fake" + A40[:20] + "==",
]
BEGIN, END = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
VISA, AMEX, MC2 = "4242" + "424242424242", "3782" + "82246310005", "2223" + "003122003222"
BASIC = base64.b64encode(b"svc-fake:hunter2-fake").decode()
PW = "hunter2" + "-Fake!"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


#: (class, message, fragments that must be gone)
SECRETS: list[tuple[str, str, tuple[str, ...]]] = [
    # bearer, basic, JWT
    ("bearer", f"401 Client Error: Unauthorized; request headers: Authorization: Bearer {JWT}", (JWT, "Fake")),
    ("bearer", f"{{'Authorization': 'Bearer {A40}', 'Accept': '*/*'}}", (A40,)),
    ("bearer", f'{{"headers":{{"authorization":"Bearer {A40}"}}}}', (A40,)),
    ("bearer", f"[(b'authorization', b'Bearer {A40}'), (b'host', b'api.example.com')]", (A40,)),
    ("bearer", f"upstream rejected bearer {A40} with 403", (A40,)),
    ("bearer", f"curl -H 'Authorization: Bearer {A40}' https://api.example.com/v1/x failed", (A40,)),
    ("bearer", f"Metadatum(key='authorization', value='Bearer {A40}')", (A40,)),
    ("bearer", f"authorization=Bearer%20{A40}&x=1", (A40,)),
    ("basic", f"Authorization: Basic {BASIC}", (BASIC,)),
    ("basic", f"proxy-authorization: basic {BASIC}\r\nhost: example.com", (BASIC,)),
    ("basic", f"httpx.HTTPStatusError: 407, sent Basic {BASIC} to proxy", (BASIC,)),
    ("basic", "requests.get(url, auth=('svc_fake', 'Sup3rFake'))", ("Sup3rFake",)),
    ("basic", "auth=HTTPBasicAuth('svc_fake', 'Sup3rFake') failed", ("Sup3rFake",)),
    ("basic", "aiohttp BasicAuth(login='svc_fake', password='Sup3rFake', encoding='latin1')", ("Sup3rFake",)),
    ("jwt", f"jwt.exceptions.ExpiredSignatureError: Signature has expired: {JWT}", (JWT, "Fake")),
    ("jwt", f"token {JWT[:70]}... could not be decoded", (JWT[:70],)),
    ("jwt", f"id_token={JWT}", (JWT,)),
    ("auth", f"Authorization: token {GHP}", (GHP,)),
    ("auth", f"Authorization: ApiKey {A40}", (A40,)),
    ("auth", f'Authorization: Digest username="fake", realm="x", nonce="{A40[:12]}", response="6629fae49393a05397450978507c4ef1"', ("6629fae49393a05397450978507c4ef1",)),
    ("auth", f"Authorization: AWS4-HMAC-SHA256 Credential={AKIA}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024", (AKIA, "fe5f80f77d5fa3be")),
    ("auth", f"X-Api-Key: {A40}", (A40,)),
    ("auth", f"x-goog-api-key={GOOGLE}", (GOOGLE,)),
    ("auth", f"Headers({{'host': 'x', 'x-auth-token': '{A40[:16]}'}})", (A40[:16],)),
    # providers
    ("openai", f"openai.AuthenticationError: Error code: 401 - {{'error': {{'message': 'Incorrect API key provided: {OPENAI}.'}}}}", (OPENAI,)),
    ("openai", f"Incorrect API key provided: sk-proj-{'*' * 40}x9Fk. You can find your API key at https://platform.openai.com", ("x9Fk",)),
    ("openai", f"OpenAI(api_key={OPENAI_PROJ!r})", (OPENAI_PROJ,)),
    ("openai", f"OPENAI_API_KEY={OPENAI_SVC}", (OPENAI_SVC,)),
    ("openai", f"key {OPENAI_PROJ} lacks scope model.request", (OPENAI_PROJ,)),
    ("anthropic", f"anthropic.AuthenticationError: invalid x-api-key {ANTHROPIC}", (ANTHROPIC,)),
    ("google", f"GET https://generativelanguage.googleapis.com/v1/models?key={GOOGLE} 400", (GOOGLE,)),
    ("google", f"API key not valid: {GOOGLE}", (GOOGLE,)),
    ("google", f'"client_secret":"{GOCSPX}"', (GOCSPX,)),
    ("google", f"access_token: {YA29}", (YA29,)),
    ("aws", f"botocore.exceptions.ClientError: InvalidClientTokenId for {AKIA}", (AKIA,)),
    ("aws", f"aws_access_key_id={ASIA} aws_secret_access_key={AWS_SECRET}", (ASIA, AWS_SECRET)),
    ("aws", f'{{"AccessKeyId": "{ASIA}", "SecretAccessKey": "{AWS_SECRET}", "SessionToken": "{AWS_SESSION}"}}', (ASIA, AWS_SECRET, AWS_SESSION)),
    ("aws", f"AWS secret {AWS_SECRET} does not match", (AWS_SECRET,)),
    ("aws", f"boto3.client('s3', aws_secret_access_key='{AWS_SECRET}')", (AWS_SECRET,)),
    ("aws", f"AWS_SESSION_TOKEN={AWS_SESSION}", (AWS_SESSION,)),
    ("aws", f"https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={AKIA}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Security-Token={quote(AWS_SESSION, safe='')}&X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe", (AKIA, "fe5f80f77d5f", A40)),
    ("aws", f"https://b.s3.amazonaws.com/k?AWSAccessKeyId={AKIA}&Signature=vjbyPxybdZaNmGa%2ByT272YEAiv4%3D&Expires=1767225600", (AKIA, "vjbyPxybdZaNmGa")),
    ("azure", f"DefaultEndpointsProtocol=https;AccountName=fake;AccountKey={AZURE_ACCOUNT};EndpointSuffix=core.windows.net", (AZURE_ACCOUNT,)),
    ("azure", "https://fake.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01T00%3A00%3A00Z&sr=b&sp=r&sig=Fak3Z1h2Q3RoaXNpc2Zha2VzaWduYXR1cmU%3D", ("Fak3Z1h2Q3RoaXNpc2Zha2V",)),
    ("azure", f"AADSTS7000215: Invalid client secret provided: {AZURE_CLIENT}", (AZURE_CLIENT,)),
    ("azure", f"Endpoint=sb://fake.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={A40}=", (A40,)),
    ("azure", f"azure client_secret={AZURE_CLIENT}", (AZURE_CLIENT,)),
    ("github", f"remote: Invalid username or password for https://{GHP}@github.com/o/r.git", (GHP,)),
    ("github", f"Bad credentials ({GHO})", (GHO,)),
    ("github", f"GITHUB_TOKEN: {PAT}", (PAT,)),
    ("gitlab", f"PRIVATE-TOKEN: {GLPAT}", (GLPAT,)),
    ("gitlab", f"git clone https://oauth2:{GLPAT}@gitlab.com/g/p.git", (GLPAT,)),
    ("slack", f"slack_sdk.errors.SlackApiError: invalid_auth token={XOXB}", (XOXB,)),
    ("slack", f"POST {SLACK_HOOK} returned 404", ("T0FAKE000", "B0FAKE000")),
    ("stripe", f"stripe.error.AuthenticationError: Invalid API Key provided: {STRIPE}", (STRIPE,)),
    ("stripe", f"No such customer; key {STRIPE_RK}", (STRIPE_RK,)),
    ("stripe", f"SignatureVerificationError with secret {WHSEC}", (WHSEC,)),
    ("hf", f"huggingface_hub: Invalid user token {HF}", (HF,)),
    ("npm", f"//registry.npmjs.org/:_authToken={NPM}", (NPM,)),
    ("pypi", f"twine upload -u __token__ -p {PYPI}", (PYPI,)),
    ("sendgrid", f"HTTP 401 for {SENDGRID}", (SENDGRID,)),
    ("telegram", f"https://api.telegram.org/bot{TELEGRAM}/sendMessage 401", (TELEGRAM, TELEGRAM[11:])),
    ("telegram", f"bot token {TELEGRAM} unauthorized", (TELEGRAM[11:],)),
    ("datadog", f"DD_API_KEY={DATADOG}", (DATADOG,)),
    ("datadog", f"DD-APPLICATION-KEY: {DATADOG_APP}", (DATADOG_APP,)),
    ("datadog", f"Datadog rejected api key {DATADOG} (403)", (DATADOG,)),
    # connection strings
    ("dsn", f"could not connect to postgresql://app:{PW}@db.example.com:5432/orders", (PW, "hunter2")),
    ("dsn", "sqlalchemy.exc.OperationalError: (mysql+pymysql://root:p@ss/w0rd#1@10.1.2.3/app)", ("p@ss", "w0rd#1", "10.1.2.3")),
    ("dsn", "redis.exceptions.ConnectionError: redis://:fakeS3cret@cache.internal:6379/0", ("fakeS3cret", "cache.internal")),
    ("dsn", "amqps://svc:Fake%40pw1@mq.example.com/vhost", ("Fake%40pw1",)),
    ("dsn", "mongodb+srv://u:FakePw99@cluster0.abcde.mongodb.net/?retryWrites=true", ("FakePw99",)),
    ("dsn", f"connection failed: host=db.internal port=5432 user=app password={PW} dbname=x", (PW, "db.internal")),
    ("dsn", "psycopg.connect(\"host=db.corp user=app password='Fa ke pw9' dbname=x\")", ("Fa ke pw9", "db.corp")),
    ("dsn", "jdbc:postgresql://pg.example.com:5432/db?user=app&password=FakePw99&ssl=true", ("FakePw99",)),
    ("dsn", "jdbc:sqlserver://sql01.corp:1433;databaseName=x;user=sa;password=FakePw99;encrypt=true", ("FakePw99", "sql01.corp")),
    ("dsn", "jdbc:oracle:thin:scott/FakeTiger9@//ora.example.com:1521/x", ("FakeTiger9",)),
    ("dsn", "[28000] Driver={ODBC Driver 18 for SQL Server};Server=tcp:sql01;Uid=sa;Pwd={Fake;Pw 99};Encrypt=yes", ("Fake;Pw 99", "Pw 99")),
    ("dsn", "Data Source=sql01;User ID=sa;Password=FakePw99;Initial Catalog=x", ("FakePw99",)),
    ("dsn", 'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="svc" password="FakePw99";', ("FakePw99",)),
    ("dsn", "KafkaError: sasl_plain_username='svc', sasl_plain_password='FakePw99'", ("FakePw99",)),
    ("dsn", "Error 1045: dsn app:FakePw99@tcp(10.2.3.4:3306)/shop", ("FakePw99", "10.2.3.4")),
    ("dsn", "amqp connection svc:FakePw99@mq.example.com:5672 refused", ("FakePw99",)),
    ("dsn", "https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/42", ("0123456789abcdef0123456789abcdef",)),
    # query, form, fragment
    ("query", "GET /cb?code=4%2F0AFakeCodeXyz123&state=f4keState99xyz", ("0AFakeCodeXyz123", "f4keState99xyz")),
    ("query", f"redirect to https://app.example.com/#access_token={A40}&token_type=bearer&expires_in=3600", (A40,)),
    ("query", f"grant_type=refresh_token&refresh_token={A40}&client_id=app", (A40,)),
    ("query", f"grant_type=password&username=fake&password={PW}", (PW,)),
    ("query", "https://api.example.com/v1/x?api_key=0f4kefakefake9 returned 403", ("0f4kefakefake9",)),
    ("query", "https://maps.example.com/geocode?address=x&key=f4keKeyValue99", ("f4keKeyValue99",)),
    ("query", "https://x.example.com/reset?token=550e8400-e29b-41d4-a716-446655440000", ("550e8400-e29b",)),
    ("query", "code_verifier=dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk", ("dBjftJeZ4CVP",)),
    ("query", '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nFakePw99\r\n--b--', ("FakePw99",)),
    # cookies
    ("cookie", "Cookie: sessionid=f4kesession99; csrftoken=f4kecsrf99", ("f4kesession99", "f4kecsrf99")),
    ("cookie", "Set-Cookie: sid=s%3Af4kesession99.sig; Path=/; HttpOnly", ("f4kesession99",)),
    ("cookie", "{'cookie': 'sid=f4kesession99; theme=dark'}", ("f4kesession99",)),
    ("cookie", "<RequestsCookieJar[<Cookie sid=f4kesession99 for .example.com/>]>", ("f4kesession99",)),
    ("cookie", "cookies={'session': 'f4kesession99abc'}", ("f4kesession99abc",)),
    ("cookie", "JSESSIONID=F4KE0123456789ABCDEF0123456789AB", ("F4KE0123456789",)),
    # PEM
    ("pem", "\n".join([BEGIN, *PEM_BODY, END]), tuple(PEM_BODY)),
    ("pem", '{"private_key": "' + "\\n".join([BEGIN, *PEM_BODY, END, ""]) + '"}', tuple(PEM_BODY)),
    ("pem", "Could not deserialize key data: b'" + "\\n".join([BEGIN, *PEM_BODY]), tuple(PEM_BODY)),
    ("pem", "ValueError: " + BEGIN + "\n" + PEM_BODY[0][:40], (PEM_BODY[0][:40],)),
    ("pem", PEM_BODY[1] + "\n" + PEM_BODY[2] + "\n" + END, (PEM_BODY[1], PEM_BODY[2])),
    ("pem", " ".join([BEGIN.replace("RSA ", "OPENSSH "), *PEM_BODY, END.replace("RSA ", "OPENSSH ")]), tuple(PEM_BODY)),
    # personal data
    ("email", "user alice.fake+tag@example.co.uk not found", ("alice.fake", "example.co.uk")),
    ("email", "550 5.1.1 <bob_fake@mail.example.com>: Recipient address rejected", ("bob_fake",)),
    ("email", "{'email': 'jürgen.fake@beispiel.de'}", ("jürgen.fake", "rgen.fake")),
    ("email", "mailto:carol.fake@example.com?subject=x", ("carol.fake",)),
    ("card", f"card {VISA} was declined", (VISA,)),
    ("card", "card 4242 4242 4242 4242 was declined", ("4242 4242",)),
    ("card", "card 4242-4242-4242-4242 was declined", ("4242-4242",)),
    ("card", f"amex {AMEX}", (AMEX,)),
    ("card", "amex 3782 822463 10005", ("822463",)),
    ("card", f"number={MC2}", (MC2,)),
    ("card", f'{{"pan":"{MC2}","cvv":"123"}}', (MC2, '"123"')),
    # hosts, addresses, users
    ("host", "could not translate host name \"db-primary.prod.internal\" to address", ("db-primary",)),
    ("host", "HTTPConnectionPool(host='billing-svc', port=8080): Max retries exceeded", ("billing-svc",)),
    ("host", "Failed to resolve 'payments.default.svc.cluster.local' ([Errno -2] Name or service not known)", ("payments.default",)),
    ("host", "getaddrinfo ENOTFOUND kafka-broker-1", ("kafka-broker-1",)),
    ("host", "dial tcp: lookup vault.corp on 10.0.0.2:53: no such host", ("vault.corp", "10.0.0.2")),
    ("host", "Cannot connect to host api.corp.fakeco.com:443 ssl:default", ("api.corp.fakeco.com",)),
    ("host", "http://inventory:8080/v1/items returned 500", ("inventory",)),
    ("host", "Error connecting to redis-main:6379", ("redis-main",)),
    ("host", "ip-10-0-3-17.ec2.internal refused", ("ip-10-0-3-17",)),
    ("host", "NAS at printer.local and nas.lan unreachable", ("printer.local", "nas.lan")),
    ("ip", "connect ECONNREFUSED 10.20.30.40:5432", ("10.20.30.40",)),
    ("ip", "dial tcp 192.168.1.20:443: i/o timeout", ("192.168.1.20",)),
    ("ip", "no route to 172.16.254.1", ("172.16.254.1",)),
    ("ip", "http://169.254.169.254/latest/meta-data/ blocked", ("169.254.169.254",)),
    ("ip", "[fd12:3456:789a:1::1]:5432 refused", ("fd12:3456:789a:1::1",)),
    ("ip", "fe80::1ff:fe23:4567:890a%eth0 unreachable", ("fe80::1ff", "eth0")),
    ("ip", "Connection refused: db/10.0.0.5:5432", ("10.0.0.5",)),
    ("user", "FileNotFoundError: [Errno 2] No such file or directory: '/home/alice/app/x.csv'", ("alice",)),
    ("user", "open /Users/bobfake/Library/x: permission denied", ("bobfake",)),
    ("user", r"C:\Users\carolfake\AppData\Local\x.log is locked", ("carolfake",)),
    ("user", r"'C:\\Users\\carolfake\\x.log'", ("carolfake",)),
    ("user", r"C:\Users\Dave Fake\Documents\x.log", ("Dave", "Fake")),
    ("user", "file:///home/erinfake/x.py", ("erinfake",)),
    # SQL and stacks
    ("sql", "(psycopg.errors.UndefinedColumn) column \"x\" does not exist\n[SQL: SELECT ssn, salary FROM employees\nWHERE id = %(id)s]\n[parameters: {'id': 'fake-77'}]\n(Background on this error at: https://sqlalche.me/e/20/f405)", ("salary", "employees", "fake-77")),
    ("sql", "syntax error at or near \"FORM\"\nLINE 1: SELECT salary FORM employees WHERE name = 'fake'\n                      ^", ("salary", "employees", "'fake'")),
    ("sql", "INSERT INTO payroll (name, iban) VALUES ('fake', 'DE00')", ("payroll", "DE00")),
    ("sql", "failed: update accounts set balance = 0 where owner = 'fake'", ("balance", "owner")),
    ("sql", "near \"x\": select * from secret_table where a = 1", ("secret_table",)),
    ("sql", "duplicate key value violates unique constraint \"users_email_key\"\nDETAIL:  Key (phone)=(+15550100fake) already exists.", ("+15550100fake",)),
    ("sql", "DETAIL:  Failing row contains (7, fake name, 1990-01-01, null).", ("fake name", "1990-01-01")),
    ("sql", "Duplicate entry 'fake-name' for key 'users.name'", ("fake-name",)),
    ("sql", "query failed: DELETE FROM sessions WHERE token_id = 5 params=('fakeparam', 42)", ("fakeparam", "sessions")),
    ("stack", "Traceback (most recent call last):\n  File \"/srv/app/billing/client.py\", line 42, in charge\n    gateway.charge(amount)\nValueError: bad", ("billing/client.py", "gateway.charge")),
    ("stack", "java.lang.RuntimeException: x\n\tat com.fakeco.billing.Charge.run(Charge.java:42)\n\tat java.base/java.lang.Thread.run(Thread.java:829)", ("com.fakeco.billing", "Charge.java")),
    ("stack", "TypeError: x\n    at charge (/srv/app/src/billing.js:10:15)\n    at async /srv/app/index.js:3:1", ("billing.js", "index.js")),
    ("stack", "System.Exception: x\n   at FakeCo.Billing.Charge(String id) in C:\\src\\Charge.cs:line 42", ("FakeCo.Billing", "Charge.cs")),
    # dumps, flags, files, reprs
    ("env", "environ({'HOME': '/home/alice', 'PGPASSWORD': 'FakePw99', 'LANG': 'C'})", ("FakePw99", "alice")),
    ("env", f"export STRIPE_SECRET={A40}\nexport LANG=C", (A40,)),
    ("env", "SECRET_KEY_BASE=0123fakefake4567 RAILS_ENV=production", ("0123fakefake4567",)),
    ("env", "env: DB_PASSWORD_PROD=FakePw99 MYSQL_PWD=FakePw98", ("FakePw99", "FakePw98")),
    ("cli", "command ['pg_dump', '--password', 'FakePw99', '-h', 'x'] returned 1", ("FakePw99",)),
    ("cli", "tool --password FakePw99 --verbose exited 2", ("FakePw99",)),
    ("cli", "tool --api-key=FakeKey99 --token FakeTok99", ("FakeKey99", "FakeTok99")),
    ("cli", "mysql -u root -pFakePw99 -h x app", ("FakePw99",)),
    ("cli", "mysql -uroot -p'Fake Pw99' app", ("Fake Pw99", "Pw99")),
    ("cli", "sshpass -p FakePw99 ssh host", ("FakePw99",)),
    ("cli", "curl -u svc:FakePw99 https://api.example.com", ("FakePw99",)),
    ("cli", "curl --user 'svc:Fake Pw99' https://api.example.com", ("Fake Pw99", "Pw99")),
    ("cli", "docker login -u fake -p FakePw99 registry.example.com", ("FakePw99",)),
    ("cli", "redis-cli -h x -a FakePw99 ping", ("FakePw99",)),
    ("yaml", "database:\n  user: app\n  password: FakePw99\n", ("FakePw99",)),
    ("yaml", "apiKey: \"FakeKey99\"", ("FakeKey99",)),
    ("yaml", "password: |\n    FakePw99\n    more99\nnext: x", ("FakePw99", "more99")),
    ("yaml", "env:\n- name: DB_PASSWORD\n  value: FakePw99\n", ("FakePw99",)),
    ("ini", "[db]\npwd = FakePw99", ("FakePw99",)),
    ("toml", 'client_secret = "FakeSec99"', ("FakeSec99",)),
    ("xml", "<config><password>FakePw99</password></config>", ("FakePw99",)),
    ("xml", '<add key="ApiKey" value="FakeKey99"/>', ("FakeKey99",)),
    ("xml", '<db user="x" password="FakePw99"/>', ("FakePw99",)),
    ("xml", "<wsse:Password Type=\"x#PasswordText\">FakePw99</wsse:Password>", ("FakePw99",)),
    ("repr", "Settings(user='x', password='FakePw99', debug=True)", ("FakePw99",)),
    ("repr", "Config(token=SecretStr('FakeTok99'))", ("FakeTok99",)),
    ("repr", "1 validation error for Login\nusername\n  Field required [type=missing, input_value={'password': 'FakePw99'}, input_type=dict]", ("FakePw99",)),
    ("json", '{"user":"x","passWord":"FakePw99"}', ("FakePw99",)),
    ("json", '{"credentials": {"username": "x", "secretKey": "FakeSec99"}}', ("FakeSec99",)),
    ("json", '{"passwords": ["FakePw98", "FakePw99"]}', ("FakePw98", "FakePw99")),
    ("prose", "login failed, password is FakePw99", ("FakePw99",)),
    ("prose", "wrong password 'fakepass' for user", ("fakepass",)),
    ("prose", "pwd: fakepassword", ("fakepassword",)),
    ("prose", "CREATE USER x IDENTIFIED BY 'FakePw99'", ("FakePw99",)),
    ("prose", "machine api.example.com login fake password fakepassword", ("fakepassword",)),
    ("prose", "token FakeTok99xyz has been revoked", ("FakeTok99xyz",)),
    ("prose", "PASSWORD = FakePw99", ("FakePw99",)),
    ("prose", "Password: correcthorse", ("correcthorse",)),
    ("ruby", '{:password=>"FakePw99", "api_key" => "FakeKey99"}', ("FakePw99", "FakeKey99")),
    ("php", "array(2) { [\"password\"]=> string(8) \"FakePw99\" }", ("FakePw99",)),
    ("go", "&{User:x Password:FakePw99 Token:FakeTok99}", ("FakePw99", "FakeTok99")),
    ("unicode", "пароль: FakePw99", ("FakePw99",)),
]  # fmt: skip

#: written after the rules, with other words: what the rules were not made for
HELD_OUT: list[tuple[str, tuple[str, ...]]] = [
    ("psycopg.OperationalError: connection to server at \"10.4.7.21\", port 5432 failed: FATAL:  password authentication failed for user \"svc\"\nconnection to server at \"pg-prod-1.internal\" (10.4.7.22)",("10.4.7.21","pg-prod-1","10.4.7.22")),
    ("dsn: user=app password='it\\'s fake' host=/var/run",("it\\'s","s fake")),
    ("password=p@$$w0rd!,next",("p@$$w0rd!",)),
    ("Password:FakePw99",("FakePw99",)),
    ("PASS=FakePw99",("FakePw99",)),
    ("user/pass: admin/FakePw99",("FakePw99",)),
    ("db_pass='FakePw99'",("FakePw99",)),
    ("passwd FakePw99 rejected",("FakePw99",)),
    ("The password you entered (FakePw99) is incorrect",("FakePw99",)),
    ("secret: fakefakefake",("fakefakefake",)),
    ("token=abc123",("abc123",)),
    ("access-token: abc123def",("abc123def",)),
    ("x-access-token=abc123def",("abc123def",)),
    ("X-Amz-Security-Token: "+AWS_SESSION,(AWS_SESSION,)),
    ("api-key: abc123def",("abc123def",)),
    ("API Key: abc123def",("abc123def",)),
    ("apikey abc123def is not authorised",("abc123def",)),
    ("Api-Key=abc123def&x=1",("abc123def",)),
    ("ApiKeyAuth(api_key=abc123def)",("abc123def",)),
    ("{'x-api-key': b'abc123def'}",("abc123def",)),
    ("(\"api_key\", \"abc123def\")",("abc123def",)),
    ("os.environ['OPENAI_API_KEY'] = 'abc123def'",("abc123def",)),
    (f"params={{'key': '{GOOGLE}'}}",(GOOGLE,)),
    ("httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'https://api.example.com/v1?access_token=abc123def&x=1'",("abc123def",)),
    ("for url: https://api.example.com/oauth/callback?state=xyzABC123&code=SplxlOBeZQQYbYS6WxSbIA",("SplxlOBeZQQ","xyzABC123")),
    ("https://app.example.com/cb#id_token="+JWT+"&state=af0ifjsldkj",(JWT,"af0ifjsldkj")),
    ("https://user:secretpw@example.com/path",("secretpw",)),
    ("ftp://bob:pw123@ftp.example.com",("pw123",)),
    ("socks5://proxyuser:proxypw@proxy.example.com:1080",("proxypw",)),
    ("http_proxy=http://u:pw1@proxy.corp:3128",("pw1","proxy.corp")),
    ("redis://default:abc@cache:6379/0",(":abc@","cache:6379")),
    ("postgresql+asyncpg://app:%3Ffake%40@pg/db",("%3Ffake%40",)),
    ("Server=tcp:fake.database.windows.net,1433;User ID=sa;Password=Fake{Pw}99;",("Fake{Pw}99","Pw}99")),
    ("DRIVER={PostgreSQL};UID=app;PWD=FakePw99;SERVER=db01",("FakePw99",)),
    ("security.protocol=SASL_SSL, sasl.mechanism=PLAIN, sasl.username=u, sasl.password=FakePw99",("FakePw99",)),
    ("org.apache.kafka.common.security.scram.ScramLoginModule required username=\\\"u\\\" password=\\\"FakePw99\\\";",("FakePw99",)),
    ("sasl.oauthbearer.client.secret=FakePw99",("FakePw99",)),
    ("ldap bind failed: cn=admin,dc=x password=FakePw99",("FakePw99",)),
    ("smtp AUTH LOGIN user=bob pass=FakePw99",("FakePw99",)),
    ("SMTPAuthenticationError: (535, b'5.7.8 Error') for alice@fake.example.com",("alice@",)),
    ("User(id=1, email='alice@fake.example.com', name='A')",("alice@",)),
    ("ALICE.FAKE@EXAMPLE.COM not found",("ALICE.FAKE",)),
    ("\"Alice Fake\" <alice_fake@sub.example.io>",("alice_fake",)),
    ("alice.fake@example.museum,bob.fake@example.com",("alice.fake","bob.fake")),
    ("card_number=5555555555554444",("5555555555554444",)),
    ("PAN 5105 1051 0510 5100 expired 12/27",("5105 1051","0510 5100")),
    ("charge to 6011111111111117 failed",("6011111111111117",)),
    ("cc:378282246310005;exp",("378282246310005",)),
    ("{\"card\":{\"number\":\"4000056655665556\",\"cvc\":\"314\"}}",("4000056655665556","314")),
    ("3056-930902-5904 diners",("930902",)),
    ("2223 0000 4841 0010", ("4841",)),
    ("cvv=123",("123",)),
    ("http://10.0.0.1:9200/_search timed out",("10.0.0.1",)),
    ("Connection to 172.31.255.254 closed",("172.31.255.254",)),
    ("ping 169.254.1.1",("169.254.1.1",)),
    ("inet6 fd00::1 refused, fe80::1%en0",("fd00::1","fe80::1")),
    ("fdab:cdef:1234::42",("fdab:cdef:1234::42",)),
    ("::ffff:10.0.0.7",("10.0.0.7",)),
    ("https://jira.corp/browse/X-1",("jira.corp",)),
    ("https://wiki.intranet.fakeco.com/x",("wiki.intranet",)),
    ("vault.service.consul:8200",("vault.service",)),
    ("my-svc.my-ns.svc.cluster.local:80",("my-svc",)),
    ("my-svc.my-ns.svc",("my-svc",)),
    ("ip-172-31-5-9.eu-west-1.compute.internal",("ip-172-31-5-9",)),
    ("metadata.google.internal",("metadata.google",)),
    ("host.docker.internal:5432",("host.docker",)),
    ("Name or service not known: 'db.internal'",("db.internal",)),
    ("urllib3.exceptions.NewConnectionError: <urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new connection to orders-api.prod.svc.cluster.local",("orders-api",)),
    ("NXDOMAIN looking up build01.lan",("build01",)),
    ("smb://fileserver/share/x",("fileserver",)),
    ("\\\\fileserver01\\share\\x.docx not found",("fileserver01",)),
    ("PermissionError: [Errno 13] Permission denied: '/home/alice_f/.ssh/id_rsa'",("alice_f",)),
    ("/Users/alice.fake/Documents/x.txt",("alice.fake",)),
    ("c:\\users\\alicef\\x",("alicef",)),
    ("C:/Users/alicef/x",("alicef",)),
    ("/mnt/c/Users/alicef/x",("alicef",)),
    ("\\\\srv\\Users\\alicef\\x",("alicef",)),
    ("/var/home/alicef/x",("alicef",)),
    ("at /home/alicef/app/x.py:42",("alicef",)),
    ("cwd=/home/alicef",("alicef",)),
    ("HOME=/home/alicef USER=alicef",("HOME=/home/alicef",)),
    ("sqlite3.OperationalError: near \"FROM\": syntax error in: SELECT a,b FROM users_private WHERE x=1",("users_private",)),
    ("[SQL: INSERT INTO users (email, name) VALUES (?, ?)]\n[parameters: ('alice', 'fake name')]",("alice","fake name","users (email")),
    ("asyncpg.exceptions.PostgresSyntaxError: syntax error at or near \"where\"\nSTATEMENT: update users set ssn='123-45-6789' where id=7",("123-45-6789",)),
    ("ERROR: duplicate key value violates unique constraint \"users_pkey\" DETAIL: Key (email)=(alice@x.example.com) already exists.",("alice",)),
    ("Query: SELECT * FROM payroll; args: ['fake-arg']",("payroll","fake-arg")),
    ("pymysql.err.ProgrammingError: (1064, \"You have an error in your SQL syntax near 'SELEC name FROM staff WHERE id=7' at line 1\")",("staff",)) ,
    ("ORA-00942: SELECT salary FROM hr.staff",("hr.staff",)),
    ("executing: select u.id, u.ssn from users u join orders o on o.uid = u.id",("u.ssn",)),
    ("delete from users where email='alice'",("email='alice'",)),
    ("Exception in thread \"main\" java.lang.NullPointerException\n    at com.fakeco.Foo.bar(Foo.java:12)\n    ... 3 more",("com.fakeco",)),
    ("Error: x\n    at Object.<anonymous> (/app/src/x.js:1:1)\n    at Module._compile (node:internal/modules/cjs/loader:1105:14)",("/app/src",)),
    ("panic: x\n\ngoroutine 1 [running]:\nmain.secretFunc(0xc000)\n\t/src/app/main.go:10 +0x1d",("/src/app/main.go",)),
    ("app/models/user.rb:10:in `find_secret'",("user.rb",)),
    ("#0 /var/www/html/index.php(12): App\\Secret->run('x')",("/var/www",)),
    ("Traceback (most recent call last):\\n  File \\\"/srv/app/x.py\\\", line 1, in <module>\\n    connect(pw)\\nValueError",("/srv/app/x.py",)),
    ("File \"/srv/app/x.py\", line 1",("/srv/app/x.py",)),
    ("DATABASE_URL=postgres://u:FakePw99@h/db\nSECRET=abc123def",("FakePw99","abc123def")),
    (f"{{'AWS_SECRET_ACCESS_KEY': '{AWS_SECRET}'}}",(AWS_SECRET,)),
    ("declare -x API_TOKEN=\"abc123def\"",("abc123def",)),
    ("ENV API_TOKEN abc123def",("abc123def",)),
    ("--build-arg NPM_TOKEN=abc123def",("abc123def",)),
    ("-e MYSQL_ROOT_PASSWORD=FakePw99 mysql:8",("FakePw99",)),
    ("--password='Fake Pw99'",("Pw99",)),
    ("--pass FakePw99",("FakePw99",)),
    ("-password FakePw99",("FakePw99",)),
    ("--client-secret FakePw99",("FakePw99",)),
    ("mysqldump -u root -p\"FakePw99\" db",("FakePw99",)),
    ("mysqladmin -uroot -pFakePw99 status",("FakePw99",)),
    ("SSHPASS=FakePw99 sshpass -e ssh",("FakePw99",)),
    ("sshpass -pFakePw99 ssh x",("FakePw99",)),
    ("curl" + " -uadmin:FakePw99 https://x",("FakePw99",)),
    ("curl -H \"X-Api-Key: abc123def\" https://x.example.com",("abc123def",)),
    ("curl --header 'PRIVATE-TOKEN: abc123def' x",("abc123def",)),
    ("curl -d 'client_secret=abc123def&grant_type=client_credentials' x",("abc123def",)),
    ("wget --http-user=x --http-password=FakePw99",("FakePw99",)),
    ("https://x.example.com -b 'session=abc123def456'",("abc123def456",)),
    ("stringData:\n  password: FakePw99",("FakePw99",)),
    ("data:\n  password: RmFrZVB3OTk=",("RmFrZVB3OTk=",)),
    ("[credentials]\nsecret_key=abc123def\n",("abc123def",)),
    ("smtp_password = 'FakePw99' # comment",("FakePw99",)),
    ("password = \"\"\"FakePw99\"\"\"",("FakePw99",)),
    ("<apiKey>abc123def</apiKey>",("abc123def",)),
    ("<entry key=\"password\">FakePw99</entry>",("FakePw99",)),
    ("<property name=\"password\" value=\"FakePw99\"/>",("FakePw99",)),
    ("<param name='secret'>abc123def</param>",("abc123def",)),
    ("<input type=\"password\" name=\"password\" value=\"FakePw99\">",("FakePw99",)),
    ("<![CDATA[password=FakePw99]]>",("FakePw99",)),
    ("<token><![CDATA[abc123def]]></token>",("abc123def",)),
    ("Credentials(username='u', password='FakePw99')",("FakePw99",)),
    ("LoginRequest{username=u, password=FakePw99}",("FakePw99",)),
    ("password=SecretBytes(b'FakePw99')",("FakePw99",)),
    ("namespace(token='abc123def')",("abc123def",)),
    ("Settings(db=Db(url='postgresql://u:FakePw99@h/db'))",("FakePw99",)),
    ("password\n  String should have at least 12 characters [type=string_too_short, input_value='FakePw99', input_type=str]",("FakePw99",)),
    ("{\"loc\":[\"body\",\"password\"],\"msg\":\"too short\",\"input\":\"FakePw99\"}",("FakePw99",)),
    ("Set-Cookie: session=abc123def; Path=/; Secure",("abc123def",)),
    ("set-cookie: __Host-sid=abc123def",("abc123def",)),
    ("('Cookie', 'a=abc123def; b=2')",("abc123def",)),
    ("Cookie: foo=bar123; _ga=GA1.2.3",("bar123",)),
    ("cookies: sid=abc123def456ghi",("abc123def456ghi",)),
    ("PHPSESSID=abc123def456ghi7",("abc123def456ghi7",)),
    ("_session_id=0123abcdef0123xyz",("0123abcdef0123xyz",)),
    ("csrftoken=abcDEF123456",("abcDEF123456",)),
    ("ssh key: -----BEGIN" + " OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n",("b3BlbnNzaC1rZXk",)),
    ("-----BEGIN" + " EC PRIVATE KEY-----MHcCAQEEIFake0123456789abcdefghijklmnop-----END" + " EC PRIVATE KEY-----",("MHcCAQEEIFake",)),
    ("key='-----BEGIN" + " PRIVATE KEY-----\\r\\nMIIEvFakeFakeFakeFakeFakeFake\\r\\n...'",("MIIEvFakeFake",)),
    ("-----BEGIN" + " PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBFFakeFakeFakeFake0123456789\n=abcd\n-----END" + " PGP PRIVATE KEY BLOCK-----",("lQOYBFFake",)),
    ("-----BEGIN" + " ENCRYPTED PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123\n\nMIIFakeFakeFakeFake0123456789ab",("MIIFakeFake",)),
    ("Bearer abcdefghijklmnop is not valid",("abcdefghijklmnop",)),
    ("bearer: abc123def456",("abc123def456",)),
    ("Authorization=Basic dTpw",("dTpw",)),
    ("headers={\"Authorization\": \"Basic dXNlcjpwYXNz\"}",("dXNlcjpwYXNz",)),
    ("authorization header was 'Bearer abc123def456'",("abc123def456",)),
    ("Authorization: abc123def456",("abc123def456",)),
    ("AUTHORIZATION: BEARER abc123def456",("abc123def456",)),
    ("http.request.header.authorization=Bearer abc123def456",("abc123def456",)),
    ("Authorization: Bearer\n  abc123def456",("abc123def456",)),
    ("grpc metadata: [('authorization', 'Bearer abc123def456')]",("abc123def456",)),
    ("wss://x.example.com/ws?jwt="+JWT,(JWT,)),
    ("glpat_x: "+GLPAT,(GLPAT,)),
    ("xoxp token "+XOXB.replace("xoxb","xoxp"),(XOXB[5:],)),
    ("https://discord.com/api/webhooks/123456789012345678/FakeTok_abcdefABCDEF",("FakeTok_abc",)),
    (f"{{'AWS_SECRET_ACCESS_KEY': '{AWS_SECRET}'}}", (AWS_SECRET,)),
    ("sk-" + "1234567890abcdef1234567890abcdef",("1234567890abcdef1234567890abcdef",)),
    ("OpenAI key sk-" + "abcdefghijklmnopqrstuvwxyz is revoked",("abcdefghijklmnopqrstuvwxyz",)),
    ("hf_token: "+HF,(HF,)),
    (f"api_key='{A40[:32]}'", (A40[:32],)),
    ("key " + STRIPE.replace("live", "test"), (STRIPE[8:],)),
    ("appKey: "+DATADOG_APP,(DATADOG_APP,)),
    ("datadog app key is "+DATADOG_APP,(DATADOG_APP,)),
    ("dd_api_key "+DATADOG,(DATADOG,)),
    ("azure storage key "+AZURE_ACCOUNT,(AZURE_ACCOUNT,)),
    ("SharedAccessSignature sr=https%3A%2F%2Fx&sig=abc%2F123%3D&se=1767225600&skn=Root",("abc%2F123",)),
    ("tenant secret value "+AZURE_CLIENT,(AZURE_CLIENT,)),
    ("Ocp-Apim-Subscription-Key: "+DATADOG,(DATADOG,)),
    ("google oauth refresh 1//0"+A40,(A40,)),
    ("refreshToken\":\"abc123def\"",("abc123def",)),
    ("client-secret=abc123def",("abc123def",)),
    ("clientSecret: abc123def",("abc123def",)),
    ("consumer_secret=abc123def",("abc123def",)),
    ("signing_key=abc123def",("abc123def",)),
    ("ENCRYPTION_KEY=abc123def",("abc123def",)),
    ("private_key=abc123def",("abc123def",)),
    ("JWT_SECRET=fakesecret",("fakesecret",)),
    ("webhook secret: fakesecret1",("fakesecret1",)),
    ("passphrase: correct horse battery staple",("horse","staple")),
    ("otp=123456",("123456",)),
    ("one-time password 123456 expired",("123456",)),
    ("pin=1234",("1234",)),
    ("password\t=\tFakePw99",("FakePw99",)),
    ("password  FakePw99",("FakePw99",)),
    ("'password':'FakePw99','x':1",("FakePw99",)),
    ("password:'FakePw99'",("FakePw99",)),
    ("password=>'FakePw99'",("FakePw99",)),
    ("`password`=`FakePw99`",("FakePw99",)),
    ("“password”: “FakePw99”",("FakePw99",)),
    ("PASSWORD:FakePw99;",("FakePw99",)),
    ("[password]=FakePw99",("FakePw99",)),
    ("user[password]=FakePw99&x",("FakePw99",)),
    ("user.password=FakePw99",("FakePw99",)),
    ("spring.datasource.password=FakePw99",("FakePw99",)),
    ("password1=FakePw99 password2=FakePw98",("FakePw99","FakePw98")),
    ("new_password=FakePw99&old_password=FakePw98",("FakePw99","FakePw98")),
    ("userPassword: FakePw99",("FakePw99",)),
    ("PasswordHash=abc123def456",("abc123def456",)),
    ("password was FakePw99",("FakePw99",)),
    ("with password FakePw99",("FakePw99",)),
    ("using password: FakePw99",("FakePw99",)),
    ("credentials: bob:FakePw99",("FakePw99",)),
    ("creds=bob:FakePw99",("FakePw99",)),
    ("username=bob;password=FakePw99;",("FakePw99",)),
    ("tool --cookie 'a=abc123; b=x9' x",("abc123","x9")),("db.example.com:5432:app:svc:FakePw99",("FakePw99",)),("hash $2b$12$FakeFakeFakeFakeFakeFuFakeFakeFakeFakeFakeFakeFakeFake",("FakeFake",)),
    ("~alicef/x.csv missing",("alicef",)),("\\\\wsl$\\Ubuntu\\home\\alicef\\x",("alicef",)),("host db-01 is unreachable",("db-01",)),("DETAIL:  parameters: $1 = 'fake-val', $2 = '7'",("fake-val",)),
    ("query: select name from staff_private",("staff_private",)),("select name from staff_private;",("staff_private",)),("4242\u00a04242\u00a04242\u00a04242",("4242\u00a04242",)),
    ("sk-" + "abc-DEF123-ghiJKL456-mnoPQR",("DEF123",)),("kubectl create secret generic x --from-literal=password=FakePw99",("FakePw99",)),("plink -pw FakePw99 x",("FakePw99",)),
    ("reset_password: FakePw99",("FakePw99",)),("http://[fd12:3456::1]:80/",("fd12:3456::1",)),("file:///C:/Users/alicef/x",("alicef",)),
    ("Signature=abc~def-123_xyzABCDEF&Key-Pair-Id=AP"+"KAFAKEIOSFODNN7EXA",("KAFAKE",)),("TWILIO_AUTH_TOKEN=0123456789abcdef0123456789abcdef",("0123456789abcdef",)),
    ("xoxe.xo" + "xp-1-FakeTok123456789",("FakeTok",)),
    ("openai.RateLimitError: Error code: 429 - org-abc key sk-"+"proj-Ab12Cd34Ef56Gh78Ij90",("Ab12Cd34",)),
    ("{\"Authorization\":[\"Bearer abcDEF123456\"]}",("abcDEF123456",)),
    ("headers: Authorization=[Bearer abcDEF123456], Accept=[*/*]",("abcDEF123456",)),
    ("[Authorization:\"Bearer abcDEF123456\", Content-Type:\"application/json\"]",("abcDEF123456",)),
    ("> Authorization: Bearer abcDEF123456\r\n> Accept: */*",("abcDEF123456",)),
    ("-H \"Authorization: Basic dXNlcjpwYXNzd29yZA==\"",("dXNlcjpwYXNz",)),
    ("Proxy-Authorization: Negotiate YIIabcdefghijk123==",("YIIabcdefghijk123",)),
    ("user:pass@proxy.internal:3128",("proxy.internal",)),
    ("AuthenticationFailed: token='abcdef' invalid",("abcdef",)),
    ("invalid_grant: refresh token 1//0gFakeFakeFakeFakeFake-xyz expired",("gFakeFake",)),
    ("postgresql://app@10.1.1.1/db",("10.1.1.1",)),
    ("could not connect to mongodb://admin:s3cr3t@mongo-0.mongo,mongo-1.mongo:27017/?replicaSet=rs",("s3cr3t",)),
    ("redis.exceptions.AuthenticationError: AUTH failed for redis://user:s3cr3t@redis.svc:6379",("s3cr3t","redis.svc")),
    ("Connection string: Server=tcp:10.0.0.9,1433;Database=x;Uid=sa;Pwd=s3cr3t;",("s3cr3t","10.0.0.9")),
    ("snowflake://user:s3cr3t@acct/db",("s3cr3t",)),
    ("ODBC: DSN=prod;UID=svc;PWD='s3;cr3t'",("s3;cr3t","cr3t")),
    ("{'user': 'u', 'passwd': 's3cr3t', 'host': 'db1'}",("s3cr3t","db1")),
    ("pymysql.connect(host='db1', user='u', passwd='s3cr3t')",("s3cr3t","db1")),
    ("OperationalError: (2003, \"Can't connect to MySQL server on 'mysql-prod' (111)\")",("mysql-prod",)),
    ("could not connect to server: Connection refused. Is the server running on host \"pg1\" (172.20.0.5) and accepting TCP/IP connections on port 5432?",("pg1","172.20.0.5")),
    ("Temporary failure in name resolution: kafka.prod.internal",("kafka.prod",)),
    ("ConnectError: [Errno 111] connect call failed ('192.168.0.4', 8080)",("192.168.0.4",)),
    ("aiohttp.ClientConnectorError: Cannot connect to host billing.svc.cluster.local:80 ssl:False",("billing.svc",)),
    ("grpc: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.244.1.7:50051: Failed to connect",("10.244.1.7",)),
    ("ipv6:[fe80::a1b2:3c4d%25eth0]:443",("fe80::a1b2",)),
    ("email=alice%40fake.example.com&x=1",("alice",)),
    ("To: alice.o'neil@fake.example.com",("neil@",)),
    ("4111-1111-1111-1111",("4111-1111",)),
    ("4111.1111.1111.1111",("4111.1111",)),
    ("{\"number\": 4111111111111111}",("4111111111111111",)),
    ("371449635398431 amex",("371449635398431",)),
    ("3714 496353 98431",("496353",)),
    ("card=5555 5555 5555 4444;",("5555 5555",)),
    ("track2: ;4111111111111111=25121010000012345?",("4111111111111111",)),
    ("(sqlite3.IntegrityError) UNIQUE constraint failed: users.email\n[SQL: INSERT INTO users (email) VALUES (?)]\n[parameters: ('alice@x.example.com',)]",("alice","INTO users")),
    ("asyncpg.exceptions.UniqueViolationError: ... DETAIL:  Key (email)=(bob@x.example.com) already exists.",("bob",)),
    ("django.db.utils.DataError: invalid input syntax for type integer: \"abc\"\nLINE 1: SELECT * FROM secret_t WHERE id = 'abc'",("secret_t",)),
    ("SELECT password FROM users WHERE login='admin'",("login='admin'",)),
    ("update users set password='s3cr3t' where id=1",("s3cr3t",)),
    ("ALTER USER bob WITH PASSWORD 's3cr3t'",("s3cr3t",)),
    ("Executed: CALL pay('DE89370400440532013000')",("DE8937",)),
    ("params: ('bob', 's3') query: SELECT 1 FROM t",("FROM t",)),
    ("  File \"/home/alice/app/main.py\", line 10, in main\n    run(token='abc')",("alice","main.py")),
    ("at com.acme.pay.Client.call(Client.java:77) ~[app.jar:1.0]",("com.acme.pay",)),
    ("Caused by: x at Foo.bar (file:///srv/app/foo.mjs:3:7)",("foo.mjs",)),
    ("/home/bob-smith/.aws/credentials not found",("bob-smith",)),
    ("D:\\Users\\bob\\x",("bob",)),
    ("C:\\\\Users\\\\bob.smith\\\\AppData",("bob.smith",)),
    ("AZURE_CLIENT_SECRET=abc~123.def",("abc~123.def",)),
    ("SLACK_WEBHOOK=https://hooks." + "slack.com/services/TAAAAAAAA/BBBBBBBBB/cccccccccccc",("TAAAAAAAA",)),
    ("export AWS_SECRET_ACCESS_KEY='abc/def+ghi123'",("abc/def+ghi123",)),
    ("Environment: SECRET_TOKEN=abc DEBUG=1",("=abc",)),
    ("docker run -e API_TOKEN=abc123 img",("abc123",)),
    ("cmd: ['curl', '-u', 'bob:s3cr3t', 'https://x.example.com']",("s3cr3t",)),
    ("['mysql', '-u', 'root', '-ps3cr3t']",("s3cr3t",)),
    ("psql \"host=db1 password=s3cr3t\"",("s3cr3t","db1")),
    ("--token=abc123 --secret 'x y z1'",("abc123","x y z1")),
    ("-Djavax.net.ssl.keyStorePassword=s3cr3t",("s3cr3t",)),
    ("-Dspring.datasource.password=s3cr3t",("s3cr3t",)),
    ("password: 's3cr3t' # prod",("s3cr3t",)),
    ("password = s3cr3t ; comment",("s3cr3t",)),
    ("token: >-\n  abc123def\n",("abc123def",)),
    ("<Authentication><User>u</User><Password>s3cr3t</Password></Authentication>",("s3cr3t",)),
    ("<connectionString>Server=x;Password=s3cr3t</connectionString>",("s3cr3t",)),
    ("Config(api_key='abc', db=DB(password='s3cr3t'))",("'abc'","s3cr3t")),
    ("api_key=SecretStr('abc123') url='x'",("abc123",)),
    ("Account{id=1, pin=1234, token=null}",("1234",)),
    ("#<User password: \"s3cr3t\", token: \"abc\">",("s3cr3t","\"abc\"")),
    ("%{password: \"s3cr3t\"}",("s3cr3t",)),
    ("password => s3cr3t",("s3cr3t",)),
    ("Password -> s3cr3t",("s3cr3t",)),
    ("key: AI"+"zaSyFakeZq7Rk2Lm9Xw4Tb6Yv1Nc8Jh3Gd5",("zaSyFake",)),
    ("ya29.a0AfakefakeFAKE123-xyz_",("a0Afake",)),
    ("GOCSPX"+"-abcDEF123ghi456",("abcDEF123",)),
    ("hf_"+"abcdefghijklmnopqrstuvwxyzABCDEFGH",("abcdefghij",)),
    ("npm_"+"abcdefghijklmnopqrstuvwxyz0123456789",("abcdefghij",)),
    ("pypi-"+"AgEIcHlwaS5vcmcCJGFi",("AgEIcHlwaS5",)),
    ("SG."+"abcdefghijklmnop.qrstuvwxyz0123456789",("abcdefghijklmnop",)),
    ("rk_"+"live_51Fakefakefake",("51Fake",)),
    ("whsec_"+"abcdef0123456789",("abcdef0123",)),
    ("glpat-"+"abcdefghij0123456789",("abcdefghij",)),
    ("gho_"+"abcdefghij0123456789abcdefghij012345",("abcdefghij",)),
    ("xoxp-"+"1234-5678-abcdef",("5678-abcdef",)),
    ("123456789:"+"AAabcdefghijklmnopqrstuvwxyz0123456",("AAabcdef",)),
    ("DD-API-KEY: 0123456789abcdef0123456789abcdef",("0123456789abcdef",)),
    ("datadog api_key=0123456789abcdef0123456789abcdef",("0123456789abcdef",)),
    ("Invalid api key 0123456789abcdef0123456789abcdef for Datadog",("0123456789abcdef",)),
    ("Invalid api key 0123456789abcdef0123456789abcdef",("0123456789abcdef",)),
    ("b'{\"access_token\":\"abc\",\"token_type\":\"bearer\"}'",("\"abc\"",)),
    ("session_token: IQoJb3JpZ2luX2VjEabcdefghijkl",("abcdefghijkl",)),
    ("AccountKey=abcd1234+/efgh==",("abcd1234",)),
    ("?sv=2020&sig=abcDEF%2B123%3D",("abcDEF",)),
    ("client_secret: abc~8Q~def.ghi",("8Q~def",)),
    ("-----BEGIN RSA PRIVATE"+" KEY-----\\nMIIabc123\\nxyz789==\\n-----END RSA PRIVATE KEY-----",("MIIabc123","xyz789")),
    ("-----BEGIN PRIVATE"+" KEY-----\nMIIabc123defghi",("MIIabc123defghi",)),
    ("-----BEGIN PRIVATE"+" KEY-----\nMIIabc",("MIIabc",)),
]  # fmt: skip

#: the same kinds of secret behind one encoding
ENCODED: list[tuple[str, tuple[str, ...]]] = [
    (quote("password=FakePw99&x=1", safe=""), ("FakePw99",)),
    ("redirect=" + quote("https://x.example.com/?access_token=" + A40, safe=""), (A40,)),
    (quote("postgres://app:FakePw99@db.internal/x", safe=""), ("FakePw99", "db.internal")),
    ("user%40fake.example.com".replace("user", "alice"), ("alice",)),
    (quote("Authorization: Bearer " + A40), (A40,)),
    ("%2Fhome%2Falicefake%2Fx", ("alicefake",)),
    ("body: " + b64("password=FakePw99&user=x"), (b64("password=FakePw99&user=x"),)),
    ("data:application/json;base64," + b64('{"api_key": "FakeKey99abc"}'), (b64('{"api_key": "FakeKey99abc"}'),)),
    ("k8s secret value " + b64("postgres://app:FakePw99@db.internal/x"), (b64("postgres://app:FakePw99@db.internal/x")[:30],)),
    ("payload=" + b64("mail alice.fake@example.com now"), (b64("mail alice.fake@example.com now")[:20],)),
    ("blob " + b64(STRIPE), (b64(STRIPE)[:20],)),
    ("raw " + b64("Authorization: Bearer " + A40), (b64("Authorization: Bearer " + A40)[:30],)),
    (repr(b"Authorization: Bearer " + A40.encode() + b"\r\nHost: x"), (A40,)),
    (repr(b'{"password": "FakePw99"}'), ("FakePw99",)),
    (repr(b"password='FakePw99'\xff"), ("FakePw99",)),
    (repr(repr({"token": "FakeTok99"})), ("FakeTok99",)),
    ('{"body": "{\\"password\\": \\"FakePw99\\"}"}', ("FakePw99",)),
    ('{"a": "{\\\\\\"api_key\\\\\\": \\\\\\"FakeKey99\\\\\\"}"}', ("FakeKey99",)),
    ('{"m": "\\u0022password\\u0022\\u003a\\u0022FakePw99\\u0022"}', ("FakePw99",)),
    ('{"m": "alice\\u0040fake.example.com"}', ("alice",)),
    ("&quot;password&quot;:&quot;FakePw99&quot;", ("FakePw99",)),
    ("&lt;password&gt;FakePw99&lt;/password&gt;", ("FakePw99",)),
    ("password%253DFakePw99", ("FakePw99",)),
    ("card=4242%204242%204242%204242", ("4242%204242",)),
]  # fmt: skip

HEX64 = "0123456789abcdef" * 4
ROWS = "1 validation error for Login\npassword\n  Input should be longer [type=x, input_value='FakePw99x', input_type=str]"
#: openings, separators and ends that are seldom seen, and values longer than a window is read
AT_THE_EDGES: list[tuple[str, str]] = [
    ("rejected dop" + "_v1_" + HEX64, HEX64[:20]),
    ("rejected doo" + "_v1_" + HEX64, HEX64[:20]),
    ("pk-" + "or-FakeZq7Rk2Lm9Xw4", "FakeZq7"),
    ("GOOG" + "1E" + "ABCDEFGHIJ234567" * 5, "ABCDEFGHIJ"),
    ("bot1234567890:" + A40, A40[:20]),
    ("eyJ" + "a" * 900 + ".eyJzdWIi.abcdef", "eyJaaaaa"),
    ("x" + JWT, JWT[-30:]),
    ("role app with encrypted password FakePw99x rejected", "FakePw99x"),
    ("password \u21d2 FakePw99x", "FakePw99x"),
    ("password<-FakePw99x", "FakePw99x"),
    ("password\uff1aFakePw99x", "FakePw99x"),
    ("\u5bc6\u7801\uff1aFakePw99x", "FakePw99x"),
    ("\u5bc6\u7801\uff1d FakePw99x", "FakePw99x"),
    ("password\t=\tFakePw99x", "FakePw99x"),
    (ROWS, "FakePw99x"),
    (ROWS.replace("\n", "\r\n"), "FakePw99x"),
    (repr(ROWS), "FakePw99x"),
    ("{'type':'x','loc':('body','password'),'msg':'m','input':'FakePw99x'}", "FakePw99x"),
    ("\n".join(PEM_BODY) + "\n" + END, "MIIEvFake"),
    (repr("\n".join(PEM_BODY) + "\n" + END), "MIIEvFake"),
    (("A" * 63 + "n\\n") * 5 + END, "AAAn"),
    ("password=" + "Fak3" * 2000 + " ok", "Fak3"),
    ("password='" + "Fak3 " * 1000 + "' ok", "Fak3"),
    ("--password " + "Fak3" * 2000 + " ok", "Fak3"),
    ("curl -u user:" + "Fak3" * 2000 + " ok", "Fak3"),
    (quote(b64('{"password": "FakePw99xyz"}'), safe=""), b64('{"password": "FakePw99xyz"}')[:20]),
    (json.dumps({"a": json.dumps({"b": json.dumps({"c": json.dumps({"password": "FakePw99x"})})})}), "FakePw99x"),
]  # fmt: skip

#: messages that must come through unchanged
BENIGN: list[str] = [
    "request 550e8400-e29b-41d4-a716-446655440000 failed",
    "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 not found",
    "digest sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 mismatch",
    "ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV is not known",
    "see reference 938N-KRKA-S18P",
    "(ref QGW7-9C7D-118Q)",
    "expected ISO date, got 2026-10-06T10:00:00.123456+02:00",
    "2026-01-01 00:00:00,123 ERROR worker-3 job failed after 3 attempts",
    "epoch 1767225600, 1767225600000 and 1767225600000000 differ",
    "start=1767225600000000000 end=1767225600123456789",
    "requires Python >=3.11,<3.14, found 3.10.2",
    "pydantic 2.11.3 and opentelemetry-api 1.39.0rc1 are incompatible",
    "Chrome/120.0.6099.109 Safari/537.36",
    "kernel 10.0.19045.3803 is not supported",
    "model gpt-4o-2024-08-06 does not exist",
    "claude-opus-4-1-20250805 is overloaded",
    "gemini-2.5-flash-preview-05-20: 429 RESOURCE_EXHAUSTED",
    "total is $1,234.56, limit EUR 99.90",
    "order 4242424242424241 not found",
    "order number 1234567890123456 is unknown",
    "invoice 2024-000123-4567 is already paid",
    "password must be at least 12 characters",
    "Password must contain an upper-case letter and a digit",
    "password: must be at least 12 characters",
    "password: Field required",
    "Password is required",
    "Password: required",
    "password reset link has expired",
    "passwords do not match",
    "your password expires in 5 days",
    "max_tokens must be between 1 and 4096",
    "max_tokens=4096 exceeds the limit",
    "{'prompt_tokens': 12, 'completion_tokens': 345, 'total_tokens': 357}",
    '{"max_tokens": 1024, "stop_token": "x"}',
    "Unexpected token < in JSON at position 0",
    "Unexpected token '}', \"{\"a\":}\" is not valid JSON",
    "SyntaxError: Unexpected token: 'export'",
    "unexpected token: foo at line 3 column 5",
    "token limit exceeded: 8192 of 8000",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
    "Token expired at 2026-01-01T00:00:00Z",
    "Invalid token: expired",
    "token is invalid",
    "token_type=bearer expires_in=3600",
    "next_page_token is not supported",
    "The security token included in the request is expired",
    "CSRF token missing or incorrect.",
    "Missing required parameter: api_key",
    "api_key is required",
    "api_key: none",
    "API key not valid. Please pass a valid API key.",
    "No API key provided",
    "Authorization header is missing",
    "Authorization: header missing",
    "Bearer token missing",
    "Bearer authentication failed",
    "Basic authentication is not enabled",
    "basic plan does not include exports",
    "401 Unauthorized: invalid credentials",
    "credentials not found",
    "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
    "secret santa list not found",
    "Secret Santa: 12 people joined",
    "secrets \"app-config\" is forbidden",
    "secret_name=app-config not found",
    "the secret of good soup is time",
    "cookie consent was declined",
    "Cookies are disabled",
    "session 42 has ended",
    "session_id=550e8400-e29b-41d4-a716-446655440000 is closed",
    "key error: 'user_id'",
    "KeyError: 'token'",
    "KeyError: 'password'",
    "missing key: customer_name",
    "key=order:42 not in cache",
    "primary key violation on table orders",
    "Key (id)=(42) already exists",
    "foreign key constraint fails",
    "state=CA zip=94105",
    "status code=404 from https://api.example.com/v1/orders/42",
    "https://api.example.com/v1/users?page=2&sort=name",
    "https://example.com/search?q=hello+world&lang=en&code=404",
    "https://docs.python.org/3/library/re.html#re.Match.group",
    "https://github.com/org/repo/issues/12",
    "https://example.com/home/dashboard is down",
    "GET /home/dashboard 404",
    "cannot clone git@github.com:org/repo.git",
    "https://medium.com/@writer/a-post",
    "https://registry.npmjs.org/@scope/pkg not found",
    "npm ERR! notarget No matching version found for @types/node@20.1.99",
    "image python:3.11-slim@sha256:abcdef0123 not found",
    "actions/checkout@v4.1.0 failed",
    "http://localhost:8080/health returned 500",
    "connect ECONNREFUSED 127.0.0.1:5432",
    "DNS server 8.8.8.8 did not answer",
    "api.openai.com: 503 Service Unavailable",
    "connection to api.stripe.com:443 timed out",
    "HTTPSConnectionPool(host='api.github.com', port=443): Read timed out.",
    "HTTPConnectionPool(host='localhost', port=8080): Max retries exceeded with url: /",
    "Donaudampfschifffahrtsgesellschaftskapitän ist nicht verfügbar",
    "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "превысокомногорассмотрительствующий не найден",
    "пароль должен содержать не менее 12 символов",
    "密码长度必须至少为12个字符",
    "予約が見つかりませんでした。日付を確認してください。",
    "लॉगिन विफल: कृपया पुनः प्रयास करें",
    "🎉 party mode is not available 🎉",
    "Please select a date from the list",
    "select one item from the menu where available",
    "Update your settings and try again",
    "delete from the cart failed",
    "insert into the slot failed",
    "SELECT permission denied on object 'x'",
    "You have an error in your SQL syntax near line 3",
    "update or delete on table \"orders\" violates foreign key constraint",
    "relation \"orders\" does not exist",
    "null value in column \"name\" violates not-null constraint",
    "division by zero",
    "list index out of range",
    "Expecting value: line 1 column 1 (char 0)",
    "Expecting ',' delimiter: line 3 column 5 (char 42)",
    "'NoneType' object has no attribute 'get'",
    "module 'threading.local' is not callable",
    "No module named 'app.internal.tools'",
    "could not find /usr/lib/python3.11/site-packages/x.py",
    "/app/data/report.csv does not exist",
    "the room 10.20 is booked from 10:00 to 11:30",
    "chapter 10.1.2 is missing",
    "version 10.0.0.1 is not supported",
    "retry after 30 s (attempt 2 of 5)",
    "429 Too Many Requests: rate limit of 60 rpm reached",
    "tests: pass=12 fail=3",
    "pass: 12, fail: 3",
    "pin must have 4 digits",
    "the author is unknown",
    "Author: unknown",
    "book_meeting(date='2026-10-06', slot='10:00') has no free room",
    "field 'date' must be YYYY-MM-DD",
    "MAC 00:1A:2B:3C:4D:5E is not registered",
    "ISBN 978-3-16-148410-0 not found",
    "phone +1 (555) 010-0100 is not reachable",
    "flight LH 1234 on 12/10/2026 is full",
    "background-color: #a1b2c3 is invalid",
    "sk-learn is not installed, did you mean scikit-learn",
    "ERR_CERT_AUTHORITY_INVALID",
    "x-request-id: req_011CSHoEeqs5C35K2UUqR7Fy",
    "request id: chatcmpl-9fK2mLq8Zx7Yw3Vb1Nc5",
    "tokenizer.json could not be loaded",
    "special token <|endoftext|> is not allowed",
    "error_code=E1042 state=closed",
    "keyboard: layout=qwerty",
    "monkey: banana",
    "authored by: the team",
    "authentication: failed",
    "authorization failed: role=viewer needs role=editor",
    "code=INVALID_ARGUMENT reason=bad_date",
    "the signature of foo(a, b) does not match",
    "Signature: (a: int, b: int) -> int",
    "opentelemetry.sdk.trace.export.BatchSpanProcessor",
    "s3://public-bucket/path/to/object.parquet not found",
    "arn:aws:s3:::public-bucket is not accessible",
    "eyJub3QiOiJhIGp3dCJ9",
    "cursor=eyJvZmZzZXQiOjEwfQ==",
    "The password field is required","password (required)","Field 'password' is required","{'password': ['This field is required.']}",'{"password": "This field may not be blank."}','{"password": {"type": "string", "minLength": 12}}',"password: str","def login(user: str, password: str) -> Token:","login() missing 1 required positional argument: 'password'","TypeError: __init__() got an unexpected keyword argument 'api_key'","ValidationError: 1 validation error for Login\npassword\n  Field required [type=missing, input_value={}, input_type=dict]","invalid password","Invalid username or password.","wrong password for user bob","password for user bob has expired","forgot password?","Change your password at https://example.com/password/reset","token count 512 is over the limit","tokens: 512","total tokens = 8192","input_tokens=12, output_tokens=5","token budget exhausted: 5000/4096","Token limit: 4096","token_limit=4096","stop_token=None","token: null","token = None","token: expired","The token has expired","Token not found","No token provided","refresh token is missing","access token expired, please log in again","API key expired","api key: missing","x-api-key header is required","API keys can be created at https://platform.example.com/keys","secret not found: app-config","Secret \"db-secret\" not found in namespace default","vault: secret engine disabled","the secret ingredient is love","cookie policy was updated","cookie: expired","auth failed","auth: required","authentication required","author=John","authority: example.com","oauth: invalid_grant","error=invalid_grant error_description=Bad Request","grant_type=authorization_code is not supported","scope=openid email","state: pending","state=running","status_code=503","code: 404","code 1234 is unknown","key 'name' is missing","key: name","sort_key=created_at","the key is under the mat","press any key to continue","session expired","Session: closed","signature mismatch","Invalid signature","sig: none","pin: invalid","shipping: pending","spinning: true","design: missing","assign: error","inside: 5","resident: yes","passing: 5","passenger: John Smith","passport: required","compass: north","bypass: true","bypass=1 pass=2","tests passed: 12","pass rate: 98.5","key rate=5","turkey: 5","monkey=banana","hockey: 3","keyword=foo","keywords: a, b","keyboard=us","keypoint: 12","decode: failed","encode=utf-8","barcode: 4006381333931","zip code: 94105","country code: DE","error code: E42","code=OK","statement: closed","estate: sold","session timeout=30","assess: yes","possession: none","side: left","insight: yes","signal: 9","sign: plus","design=modern","wrote 10 tokens: done","user bob not found","2026-10-06 is not a date: next Tuesday","book_meeting: slot 10:00 is taken","calendar returned HTTP 503","HTTP 503: Service Unavailable","ConnectionResetError: [Errno 104] Connection reset by peer","ReadTimeout: timed out after 10.0 s","SSL: CERTIFICATE_VERIFY_FAILED certificate verify failed: unable to get local issuer certificate (_ssl.c:1006)","a/b/c.txt:12: warning","x = 10.5, y = 192.5","build 10.2.3 failed","bcrypt: $2b$ is too long" ,"IPv4 93.184.216.34 is fine","2001:db8::1 did not answer","time 10:20:30 is taken","12:34:56:78 is odd","0x7f3a2c1d at 0xdeadbeef","ratio 3:2","weight 10.0.0","https://example.com:8443/users/42/orders?id=550e8400-e29b-41d4-a716-446655440000","https://cdn.example.com/assets/app.4f3c2b1a9d8e7f6a5b4c3d2e1f0a9b8c.js","https://en.wikipedia.org/wiki/Key_(cryptography)","https://example.com/reset-password is not reachable","https://example.com/#section-2","see https://sqlalche.me/e/20/gkpj","mailto links are not supported","@mention is not a user","decorator @app.route is missing","user@ is incomplete","5 @ 3.50 EUR","price: 19.99 USD","order #1234-5678-9012-3456 unknown","tracking 1Z999AA10123456784 unknown","IMEI 490154203237518 unknown","account 1234567890 closed","IBAN is invalid","EAN 4006381333931 unknown","SELECT is not allowed here","Use WHERE to filter","the FROM clause is missing","ORDER BY position 3 is not in select list","could not update the record: set a name first","create table is disabled","choose where to sit from the list","file \"report.csv\", row 3","line 12: unexpected indent","at line 5 (report.csv)","meet at cafe (main street: 12)","Straße nicht gefunden","naïve café résumé","Ελληνικά κείμενο","текст ошибки: неверный формат","токен истёк","パスワードは12文字以上で入力してください","비밀번호가 올바르지 않습니다","密码错误","كلمة المرور غير صحيحة","🔑 key not found","Lopadotemachoselachogaleokranioleipsanodrimhypotrimmatosilphiokarabomelitokatakechymenokichlepikossyphophattoperisteralektryonoptekephalliokigklopeleiolagoiosiraiobaphetraganopterygon","aGVsbG8gd29ybGQgdGhpcyBpcyBmaW5l","ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789","thisisaverylongidentifierwithoutanyspaceswhichisfine","gpt-4.1-mini-2025-04-14","text-embedding-3-large","us.anthropic.claude-sonnet-4-20250514-v1:0","meta-llama/Llama-3.3-70B-Instruct","ft:gpt-4o-mini-2024-07-18:acme::9xYz1AbC","openai/gpt-oss-120b","resp_68af0c1d9a","run_id=7f3e2d1c9b8a4f5e6d7c8b9a0f1e2d3c","conversation_id=conv-2026-0001","call_Zq7Rk2Lm9Xw4Tb6Yv1Nc8Jh3","toolu_01A09q90qw90lq917835lq9","msg_013Zva2CMHLNnjNjJJKqJ2EF","arn:aws:lambda:us-east-1:123456789012:function:book","projects/p/locations/us/models/m","k8s pod api-7d9f8b6c5-x2x9z is CrashLoopBackOff","node-1.example.com is down","mail.example.org refused","localhost:5432 refused","0.0.0.0:8080 in use","[::1]:8080 refused","/usr/local/bin/python3: not found","/home is full","/Users is not mounted","C:\\Program Files\\App\\x.dll missing","D:\\data\\x.csv missing","\\n is not allowed in names","regex ^[a-z]+\\d{2}$ did not match","50% of users","100%25","a&b","AT&T","R&amp;D","x%20y is not decoded","{\"error\": \"not found\", \"code\": 404}","{'status': 'error', 'error': {'code': 'UNAVAILABLE', 'retryable': True}}","Basic Latin characters only","basic: plan","the bearer of this letter","bearer: none","Digest mismatch","cookie jar is empty","Authorization required","Proxy-Authorization required", "credential rotation failed", "credentials: include","secrets manager unavailable","SecretsManager throttled","passwordless login is disabled","password_policy=strict","password_min_length: 12","is_secret: true","has_password=False","use_token=yes","tokenizer: cl100k_base","tokenization failed: text too long","Idempotency-Key: missing","idempotency_key=7f3e2d1c","partition_key=user#42","cache key user:42:profile not found","public_key=ssh-rsa","lock token lost","CancellationToken was cancelled","asyncio.CancelledError","unexpected end of input","next token: eof",
    "tool create_api_key: permission denied","Error in get_access_token: HTTPError 401","tool reset_password failed: timeout","reset_password: timed out","unknown tool: reset_password","missing fields: ['username', 'password', 'email']","fields ('password', 'email') are required",'["username","password","email"] are required',"expected one of: password, token, api_key","Key: 'User.Password' Error:Field validation for 'Password' failed on the 'min' tag","{'password': ['Shorter than minimum length 12.']}",'[{"path":["password"],"message":"Required"}]',"grant_type must be code | token | refresh_token","password or token: required","token: could not be read","secret: could not be decrypted","api_key: permission denied","Invalid value for parameter `token`: expected string","tool `get_secret` not found","function get_token() takes 1 argument","ensure this value has at least 12 characters (type=value_error; limit_value=12)","host is unreachable","Host key verification failed","host: unreachable","server: nginx","Server: cloudflare","Host: api.example.com","lookup failed: no such user","resolve the conflict first","cannot resolve symbol","unknown host exception","~/x.csv is missing","approx ~5 items","time 10:20:30:40:50","ratio a:1234:b","near 'x' at line 3","near the end at line 3","query: next Tuesday","query=hello world","statement: balance due","sql: connection is already closed","sql: no rows in result set","execute: permission denied","with password protection enabled","identified by name","login as guest","auth: connection refused","auth service: connection refused","cookie_banner: missing","The token you provided is invalid","the key you sent is not known","API key you provided is wrong","password that was sent","missing ',' or '}'","price $1 to $5","cost is $12.50 per 1,000 tokens","regex $2b$ nope","5$6$7",
    "The user's password was changed successfully","Your one-time password has been sent","Wrong password. Try again.","API rate limit exceeded for key type standard","The key 'x' was not found in dict","Token usage: 120 prompt, 40 completion","Token usage: prompt=120 completion=40","stop reason: max_tokens","usage={'input_tokens': 10, 'output_tokens': 20}","tokens_per_minute=90000","Session not found: 7f3e2d1c-1111-4222-8333-444455556666","session=7f3e2d1c-1111-4222-8333-444455556666","auth_time=1767225600","author_id=42","oauth2: cannot fetch token: 400 Bad Request","failed to fetch token: timeout","could not validate credentials","Credentials expired","Signature does not match","Signature verification failed","Cookie 'session' is missing","code: 'not_found'","error code: 0x80070005","http code=500","country_code=DE","Status code: 429","The secret 'db' does not exist","secret: not found","Secret not found","key=value pairs expected","key: value","keys: ['a', 'b']","public key: missing","order 2026-0001-2345-6789 unknown","order 4242-4242-4242-4241","1234-5678-9012-3456 is not a card","ts=1767225600.123456","2026-11-30T05:28:00Z","v1.2.3-rc.1+build.5","node v20.11.1","go1.22.3","10.5.2","python 3.11.7 on linux","a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0","sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709","md5 d41d8cd98f00b204e9800998ecf8427e","W/\"5f3c-abcdef\"","etag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"","https://api.github.com/repos/o/r/commits/9fceb02d0ae598e95dc970b74767f19372d61af8","https://storage.googleapis.com/bucket/file.png","wss://realtime.example.com/socket","postgres is down","the db host is unreachable","host name must not be empty","hostname mismatch","Invalid hostname: must contain a dot","server error","server=production region=eu","address: 12 Main Street","address=missing","lookup table is empty","resolve path a/b","invalid literal for int() with base 10: 'abc'","invalid input syntax for type integer: \"abc\"","could not convert string to float: 'x'","'utf-8' codec can't decode byte 0xff in position 0: invalid start byte","Object of type datetime is not JSON serializable","cannot import name 'x' from 'y' (unknown location)","maximum recursion depth exceeded","[Errno 28] No space left on device: '/var/log/app.log'","/etc/passwd: permission denied","/var/run/secrets/kubernetes.io/serviceaccount is not mounted","~/.ssh/config not found","select: invalid file descriptor","SELECT failed","insert failed: duplicate","column \"password\" does not exist","relation \"tokens\" does not exist","constraint \"token_unique\" violated","Field required: token","argument 'token' must be str, not int","token must be a string","'token' is a required property","\"password\" is not allowed to be empty","password length must be at least 12 characters long","passwords: must match","Your password is too short.","password is incorrect","The password is wrong","Password is too common.","pass a valid date","pass the date as YYYY-MM-DD","please pass date=2026-10-06","bearer of good news","basic: true","Basic usage: see docs","basic information missing","cc: team","to: everyone","user: unknown","name@","@here please","x@y","a@b is no address","5@4.50","git+ssh://git@github.com/org/repo.git","npm i left-pad@1.3.0","docker pull nginx:1.25@sha256:0123456789abcdef","foo.local()", "settings.local.json missing","app.internal_error","internal server error","Internal.Error","corp. policy","lan party","home: /","e.g. local time","local.example is fine","U+0041","\\d+ did not match","C:\\Windows\\System32\\drivers missing","\\\\ is an escape","file://localhost/x","data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","AAAAAAAAAAAAAAAAAAAAAAAAAAAA","====================","--------------------","xxxxxxxxxxxxxxxx","0000000000000000","1111111111111111111","9999-9999-9999-9999","12345678901234567890","3.141592653589793238","6.02214076e23","-122.4194155","lat=52.5200066,lng=13.4049540","+49 30 1234567","(555) 010-0199","A4 210x297","ISO 27001:2022","RFC 1918","CVE-2024-12345","JIRA-1234","PO-2026-000042","IBAN","BIC DEUTDEFF","ASIN B08N5WRWNW","VIN 1HGCM82633A004352","EUR 1.234,56","1,234,567.89 JPY","50 % off","2x4","T-1000","R2-D2",
]  # fmt: skip


PURE, WITH_RE2 = Scrubber(PythonEngine()), Scrubber(Re2Engine())
MESSAGES = (
    [message for _, message, _ in SECRETS]
    + [message for message, _ in (*HELD_OUT, *ENCODED, *AT_THE_EDGES)]
    + BENIGN
)


class Ungated(PythonEngine):
    """Runs every rule on every text: what the keywords let through must be all that can hit."""

    def gate(self, rules):
        return lambda view: [(number, rule.keywords) for number, rule in enumerate(rules)]


@pytest.mark.parametrize(("kind", "message", "fragments"), SECRETS)
def test_every_secret_of_every_class_is_hidden(kind, message, fragments):
    assert all(fragment in message for fragment in fragments)

    shown = PURE.scrub(message)

    assert [fragment for fragment in fragments if fragment in shown] == []
    assert "[REDACTED:" in shown


@pytest.mark.parametrize(("message", "fragments"), HELD_OUT)
def test_secrets_in_words_the_rules_were_not_made_for_are_hidden(message, fragments):
    shown = PURE.scrub(message)

    assert [fragment for fragment in fragments if fragment in shown] == []


@pytest.mark.parametrize(("message", "fragments"), ENCODED)
def test_secrets_behind_one_encoding_are_hidden(message, fragments):
    shown = PURE.scrub(message)

    assert [fragment for fragment in fragments if fragment in shown] == []


@pytest.mark.parametrize(("message", "fragment"), AT_THE_EDGES)
def test_secrets_at_the_edges_of_what_is_read_are_hidden(message, fragment):
    assert fragment in message

    assert fragment not in PURE.scrub(message)
    assert fragment not in WITH_RE2.scrub(message)


@pytest.mark.parametrize("size", [300, 4096])
@pytest.mark.parametrize("message", [message for _, message, _ in SECRETS][::7])
def test_half_a_secret_at_the_end_of_the_window_is_not_shown(message, size):
    """The window is 1 KiB longer than the text that is kept, at least 4 KiB."""
    fragments = next(found for _, text, found in SECRETS if text == message)
    for shown in (5, len(message) // 3, len(message) // 2):
        text = (".. " * 3000)[: 4096 + 1024 - shown] + message + " " + "x" * 5000

        assert [part for part in fragments if part[:12] in cap(text, size)] == []


@pytest.mark.parametrize("message", BENIGN)
def test_what_only_looks_like_a_secret_comes_through_unchanged(message):
    assert PURE.scrub(message) == message


def test_the_corpus_has_at_least_120_secrets_and_100_benign_messages():
    assert len(SECRETS) >= 120
    assert len(BENIGN) >= 100


def test_scrubbing_twice_changes_nothing():
    once = [PURE.scrub(message) for message in MESSAGES]

    assert [PURE.scrub(message) for message in once] == once


def test_re2_gives_the_same_answers_as_python():
    assert [WITH_RE2.scrub(message) for message in MESSAGES] == [
        PURE.scrub(message) for message in MESSAGES
    ]


def test_the_keywords_of_a_rule_are_in_everything_it_hits():
    ungated = Scrubber(Ungated())

    assert [ungated.scrub(message) for message in MESSAGES] == [
        PURE.scrub(message) for message in MESSAGES
    ]


def test_the_second_scrub_on_the_server_changes_nothing():
    """Messages are scrubbed in the agent and again by the service: nothing may change there."""
    assert [WITH_RE2.scrub(PURE.scrub(message)) for message in MESSAGES] == [
        PURE.scrub(message) for message in MESSAGES
    ]
