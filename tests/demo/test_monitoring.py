import pytest

from toolfault.demo.monitoring import is_installed, start_monitoring
from toolfault.settings import StartError


def test_without_prometheus_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not is_installed()
    with (
        pytest.raises(StartError, match="sudo apt-get install prometheus-alertmanager"),
        start_monitoring(tmp_path, "http://127.0.0.1:1"),
    ):
        pass


def test_a_program_that_does_not_start_is_told_with_its_log(monkeypatch, tmp_path):
    program = tmp_path / "alertmanager"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with (
        pytest.raises(StartError, match=r"did not become ready; .*alertmanager\.log says why"),
        start_monitoring(tmp_path, "http://127.0.0.1:1"),
    ):
        pass
