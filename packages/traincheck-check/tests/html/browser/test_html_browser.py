"""The page in a real browser: what it loads, runs, and looks like."""

from __future__ import annotations

import base64
import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

# Of each visible text: how it contrasts with what lies behind it, by WCAG 2.
CONTRASTS = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function light([r, g, b]) {
  const part = [r, g, b].map(x => x / 255)
    .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
  return .2126 * part[0] + .7152 * part[1] + .0722 * part[2];
}
function behind(element) {
  for (let each = element; each; each = each.parentElement) {
    const colour = rgba(getComputedStyle(each).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
}
document.querySelectorAll('details').forEach(each => each.open = true);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), of = walker.currentNode.parentElement;
  if (!text || !of.checkVisibility() || of.closest('svg')) continue;
  const a = light(rgba(getComputedStyle(of).color)), b = light(behind(of));
  found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), text.slice(0, 60)]);
}
return found;
"""


class Viewer:
    """Looks at a page that a server on this machine serves, and counts what it is asked for."""

    def __init__(self, chromium, address: str, asked: list[str]) -> None:
        self.chromium = chromium
        self.address = address
        self.asked = asked

    def look(self, *, width: int = 1100, scheme: str = "light", media: str = "") -> None:
        """Open the page; then look at it with `run`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setEmulatedMedia", media=media, features=features)
        self.tell("Emulation.setDeviceMetricsOverride", **metrics)
        self.chromium.get_log("performance")
        self.chromium.get_log("browser")
        self.chromium.get(f"{self.address}/report.html")

    def tell(self, command: str, **arguments):
        return self.chromium.execute_cdp_cmd(command, arguments)

    def run(self, script: str):
        return self.chromium.execute_script(script)

    def requested(self) -> list[str]:
        """Return the addresses that the page has asked for."""
        messages = [
            json.loads(each["message"])["message"] for each in self.chromium.get_log("performance")
        ]
        return [
            each["params"]["request"]["url"]
            for each in messages
            if each["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture
def view(chromium, tmp_path):
    """Return a viewer of the pages in the test's folder."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

        def end_headers(self):
            self.send_header("Cache-Control", "no-store")  # two pages of one second look the same
            super().end_headers()

    handler = functools.partial(Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Viewer(chromium, f"http://127.0.0.1:{server.server_port}", asked)
        chromium.get("about:blank")
        server.shutdown()
        thread.join()


def filled(told, names):
    """Put hostile names wherever the training program has a say."""
    told.warnings = names
    for at, name in enumerate(names):
        place = told.place(at, function=name, source=name)
        evidence = (told.record(at, requires_grad=name, **{name: name}),)
        told.broken(
            name, expected=name, first=place, variables=names, evidence=evidence, known=at % 3 == 2
        )
        told.silent(name, name, name)
    return told


HOSTILE = (
    "<script>document.title = 'owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "--></style></title></svg><svg onload=\"document.title='owned'\">",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
    "x" * 5000,
    "e" + "\u0301" * 300,
    "\u202eright to left",
)


@pytest.mark.parametrize("kind", ["rich", "hostile", "good"])
def test_the_page_asks_for_nothing_and_complains_of_nothing(begin, rich, tell, view, kind) -> None:
    """One request, the page's own; a quiet console; and the title that it was given."""
    told = {"rich": lambda: rich, "hostile": lambda: filled(tell(), HOSTILE), "good": tell}[kind]()
    begin().page(told.report())

    view.look()

    assert view.requested() == [f"{view.address}/report.html"]
    assert view.asked == ["/report.html"]
    assert view.chromium.get_log("browser") == []
    assert view.chromium.title.endswith("TrainCheck report")
    assert "invariants applied" in view.chromium.title


def test_the_policy_forbids_scripts_that_got_in(begin, tell, view) -> None:
    """Even if escaping had a hole, nothing would run, and nothing would be loaded."""
    reporting = begin()
    page = reporting.page(tell().report())
    attack = (
        "<script>document.title = 'owned'</script><img src='/x.png' onerror='document.title=1'>"
    )
    reporting.path.write_text(page.replace("</main>", f"{attack}</main>"), encoding="utf-8")

    view.look()

    assert view.chromium.title.endswith("TrainCheck report")
    assert view.asked == ["/report.html"]
    assert any(
        "Content Security Policy" in each["message"] for each in view.chromium.get_log("browser")
    )


@pytest.mark.parametrize("kind", ["rich", "hostile", "runs"])
@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_stands_out_of_the_window(  # noqa: PLR0913, PLR0917  fixtures
    begin, rich, tell, view, kind, width
) -> None:
    """On a telephone and on a desk, with everything unfolded: nothing is to scroll sideways."""
    reports = {
        "rich": [rich.report()],
        "hostile": [filled(tell(), HOSTILE).report()],
        "runs": [rich.report(HOSTILE[0]), tell().report("r" * 200)],
    }[kind]
    begin().page(*reports)

    view.look(width=width)

    view.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide, window = view.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(begin, rich, view, scheme) -> None:
    """It contrasts with its ground as WCAG 2 asks of small text, and dark is dark."""
    begin().page(rich.report())

    view.look(scheme=scheme)

    found = view.run(CONTRASTS)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []
    ground = view.run("return getComputedStyle(document.body).backgroundColor")
    red = int(ground.removeprefix("rgb(").partition(",")[0])
    assert (red < 128) == (scheme == "dark")


def test_cells_of_the_timeline_stand_where_their_steps_do(begin, tell, view) -> None:
    """As the browser draws them."""
    told = tell()
    told.broken(counts={5: 1})
    begin().page(told.report())

    view.look()

    left, width, whole = view.run(
        "const strip = document.querySelector('.chart svg').getBoundingClientRect();"
        "const cell = document.querySelector('.chart rect').getBoundingClientRect();"
        "return [cell.left - strip.left, cell.width, strip.width]"
    )
    assert left / whole == pytest.approx(0.5, abs=0.01)
    assert width / whole == pytest.approx(0.1, abs=0.01)


def test_a_link_of_the_timeline_unfolds_what_is_known(begin, rich, view) -> None:
    """What it leads to may be folded."""
    begin().page(rich.report())
    view.look()

    view.run("document.querySelector('.chart a[href$=\"-3\"]').click()")

    assert view.run("return document.getElementById('run1-3').checkVisibility()")


def test_the_page_of_a_live_run_reloads_itself(begin, tell, view, monkeypatch) -> None:
    """Without a script: the browser comes back for the next."""
    monkeypatch.setattr("traincheck_check.reporting.html.page.RELOAD_SECONDS", 1)
    reporting = begin("live")
    told = tell(more={"running": True, "complete": False})
    reporting.page(told.report(), is_over=False)
    view.look()
    told.broken("the latest news")
    told.more = {}
    reporting.page(told.report())

    from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415  needs a browser

    WebDriverWait(view.chromium, 20).until(lambda browser: "the latest news" in browser.page_source)
    assert view.run("return document.querySelector('meta[http-equiv=refresh]')") is None


def test_the_printed_page_shows_what_is_folded(begin, rich, view) -> None:
    """Paper cannot be unfolded."""
    begin().page(rich.report())
    view.look(width=800, media="print")

    shown = view.run("return document.querySelector('details:not([open]) table').checkVisibility()")
    printed = base64.b64decode(view.tell("Page.printToPDF", printBackground=True)["data"])

    assert shown
    assert printed.startswith(b"%PDF-")
