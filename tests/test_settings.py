"""Settings are a table: defaults, the environment, flags; anything unexpected is a sentence."""

from dataclasses import fields
from pathlib import Path

import pytest

from toolfault.settings import SettingError, Settings, read


def test_an_empty_environment_gives_loopback_and_the_standard_ports():
    settings = read({})

    assert settings.host == "127.0.0.1"
    assert (settings.grpc_port, settings.http_port, settings.web_port) == (4317, 4318, 8700)
    assert settings.max_request_bytes == 67_108_864
    assert settings.database_url is None


def test_a_variable_is_read_in_its_type():
    settings = read({"TOOLFAULT_GRPC_PORT": "0", "TOOLFAULT_DATA_DIR": "/srv/data"})

    assert settings.grpc_port == 0
    assert settings.data_dir == Path("/srv/data")


def test_a_flag_wins_over_its_variable_and_an_absent_flag_does_not():
    settings = read(
        {"TOOLFAULT_WEB_PORT": "1", "TOOLFAULT_HTTP_PORT": "2"}, web_port=3, http_port=None
    )

    assert settings.web_port == 3
    assert settings.http_port == 2


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("GRPC_PORT", "70000", "TOOLFAULT_GRPC_PORT: '70000' is not accepted. Give a port"),
        ("WEB_PORT", "web", "TOOLFAULT_WEB_PORT: 'web' is not accepted. Give a port"),
        ("MAX_REQUEST_BYTES", "0", "TOOLFAULT_MAX_REQUEST_BYTES: '0' is not accepted. Give bytes"),
        ("TRACE_LINK", "traces/{trace_id}", "Give http:// or https:// address"),
        ("BASE_URL", "toolfault.example", "Give http:// or https:// address"),
        ("TLS_KEY", "key.pem", "go together"),
        ("WEB_PROT", "1", "TOOLFAULT_WEB_PROT is no setting of toolfault. Did you mean TOOLFAULT_WEB_PORT?"),
    ],
)  # fmt: skip
def test_anything_unexpected_is_refused_with_a_sentence(name, value, sentence):
    with pytest.raises(SettingError) as caught:
        read({"TOOLFAULT_" + name: value})

    assert sentence in str(caught.value)


def test_a_refused_database_address_is_not_repeated():
    with pytest.raises(SettingError) as caught:
        read({"TOOLFAULT_DATABASE_URL": "mysql://user:" + "hunter2@db/x"})

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_secrets_are_not_in_the_repr():
    secret = "hunter" + "2"
    settings = read(
        {"TOOLFAULT_DATABASE_URL": f"postgresql://u:{secret}@db/x", "TOOLFAULT_TOKEN": secret}
    )

    assert secret in str(settings.database_url)
    assert secret not in repr(settings)


def test_the_librarys_own_variable_is_known():
    assert read({"TOOLFAULT_EXCEPTION_DETAIL": "off"}) == read({})


def test_every_setting_says_what_it_is_for():
    assert all(setting.metadata["sentence"].endswith(".") for setting in fields(Settings))


def test_a_secret_may_stand_in_a_file(tmp_path):
    file = tmp_path / "url"
    file.write_text("postgresql://u:fake@127.0.0.1/x\n")
    assert read({"TOOLFAULT_DATABASE_URL_FILE": str(file)}).database_url == (
        "postgresql://u:fake@127.0.0.1/x"
    )


def test_a_secret_file_that_is_missing_is_named():
    with pytest.raises(SettingError, match=r"TOOLFAULT_TOKEN_FILE: /nowhere cannot be read"):
        read({"TOOLFAULT_TOKEN_FILE": "/nowhere"})


def test_only_secrets_may_stand_in_files():
    with pytest.raises(SettingError, match="TOOLFAULT_HOST_FILE is no setting"):
        read({"TOOLFAULT_HOST_FILE": "/x"})


def test_a_secret_may_end_in_a_newline_and_holds_nothing_unprintable():
    assert read({"TOOLFAULT_TOKEN": "tft_fake\n"}).token == "tft_fake"
    with pytest.raises(SettingError, match="TOOLFAULT_TOKEN: its value is not accepted"):
        read({"TOOLFAULT_TOKEN": "tft\x1bfake"})


@pytest.mark.parametrize("url", ["notaurl", "127.0.0.1:8700", "http://[", "http://"])
def test_an_address_that_is_none_is_said_for_a_flag_as_for_a_variable(url):
    with pytest.raises(SettingError, match=r"--url: .* is not accepted"):
        read({}, url=url)
