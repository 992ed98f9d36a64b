"""Debian's Chromium, one for each file of tests, and pages that are watched while they are driven."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from tests.browser import site as sites
from tests.end_to_end.harness import running

ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "browser"
OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
_WATCH = """document.addEventListener("securitypolicyviolation",
    (event) => window.broken(event.violatedDirective + " " + event.blockedURI));"""


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=OPTIONS, chromium_sandbox=False
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def site(new_database):
    """The pages after a busy afternoon."""
    with sites.afternoon(new_database()) as pages:
        yield pages


@pytest.fixture
def guarded(new_database):
    """The pages as other machines reach them: a reference, and the secret of a support desk."""
    with sites.guarded(new_database()) as pages:
        yield pages


@pytest.fixture
def empty_store(new_database):
    """A whole service of its own, that has seen nothing yet."""
    with running(TOOLFAULT_DATABASE_URL=new_database()) as addresses:
        yield addresses


@pytest.fixture
def opened(browser, request):
    """Opens pages; no script may fail, no policy be broken, nothing come from elsewhere."""
    pages = []

    def open_(url, path="/", **options):
        context = browser.new_context(**options)
        context.set_default_timeout(15_000)
        context.expose_binding("broken", lambda _, what: faults.append(what))
        context.add_init_script(_WATCH)
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda asked: asked.url.startswith(url) or faults.append(f"asked for {asked.url}"),
        )
        pages.append((page, faults))
        page.goto(url + path)
        return page

    yield open_
    for number, (page, faults) in enumerate(pages):
        keep(page, f"{request.node.name}{number or ''}", full_page=False)
        page.context.close()
        assert faults == []


def keep(page, name, *, full_page=True):
    """A screenshot among the artefacts."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTEFACTS / f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}.png"
    page.screenshot(path=path, full_page=full_page)
