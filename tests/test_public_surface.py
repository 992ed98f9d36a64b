"""What users import: sorted, documented, light, and stable."""

import inspect
import subprocess
import sys

import toolfault
from toolfault import ToolErrorMap, taxonomy
from toolfault.errors import ToolError


def test_everything_public_is_in_all_and_sorted():
    public = {
        name
        for name, value in vars(toolfault).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert toolfault.__all__ == sorted(toolfault.__all__)
    assert set(toolfault.__all__) == public


def test_everything_public_says_what_it_is():
    for name in toolfault.__all__:
        value = getattr(toolfault, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_every_typed_error_is_public():
    def kinds(kind):
        for sub in kind.__subclasses__():
            if sub.__module__ == "toolfault.errors":
                yield sub
                yield from kinds(sub)

    assert {kind.__name__ for kind in kinds(ToolError)} <= set(toolfault.__all__)


def test_importing_the_library_pulls_in_nothing_but_the_opentelemetry_api():
    code = (
        "import sys; before = set(sys.modules); import toolfault;"
        "tops = {m.partition('.')[0] for m in set(sys.modules) - before};"
        "print(sorted(t for t in tops if t not in sys.stdlib_module_names));"
        "print(sorted(m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    ours = ["opentelemetry", "toolfault", "typing_extensions"]
    assert done.stdout.splitlines() == [repr(ours), "[]"]


def test_the_reasons_the_library_gives_itself_are_stable():
    assert {
        taxonomy.UNMAPPED_FAILURE, taxonomy.TIMED_OUT, taxonomy.NOT_PERMITTED,
        taxonomy.INVALID_ARGUMENTS, taxonomy.UNKNOWN_TOOL, taxonomy.INVALID_RESULT,
    } == {
        "unmapped_failure", "timed_out", "not_permitted",
        "invalid_arguments", "unknown_tool", "invalid_result",
    }  # fmt: skip


def test_a_map_is_callable_as_the_seed_writes_it():
    error = ToolErrorMap({}).classify(ValueError("x"), tool="cancel")
    assert (error.reason, error.code, error.transient) == ("unmapped_failure", "INTERNAL", False)
