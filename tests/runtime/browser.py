"""Opens a page in a browser without a window (Chromium, as Qt has it), and prints what it has to say, as JSON.

    python -m tests.runtime.browser page.html --size 1400x1000 [--tab Kernels --picture docs/view.png]

needs ``pip install PyQt6-WebEngine``. A process of its own: a browser has threads, and may end with what runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_DISABLE_SANDBOX", "1")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--disable-gpu")

from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineCore import QWebEnginePage
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

#: Opens a tab, and says what is to be seen of it: how far it is larger than the window, and how long its text is.
SHOW = """(name => {
  const button = [...document.querySelectorAll("#tabs button")].find(b => b.textContent === name);
  button.click();
  const main = document.getElementById("main"), shown = [...document.querySelectorAll("section.shown")];
  return { tab: name, shown: shown.length, text: shown[0].innerText.length,
           pictures: shown[0].querySelectorAll("svg *").length,
           beyond: [document.documentElement.scrollHeight - innerHeight, main.scrollHeight - main.clientHeight] };
})"""
#: What a page has loaded from elsewhere, and its tabs.
FACTS = """({ title: document.title, loaded: performance.getEntriesByType("resource").map(r => r.name),
  tabs: [...document.querySelectorAll("#tabs button")].map(b => b.textContent) })"""
#: Milliseconds that a page has to draw itself before it is looked at, and after which it is given up.
DRAWN, MOST = 300, 100_000


class Page(QWebEnginePage):
    """A page that keeps what its script complains of."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent)
        self.complaints: list[str] = []

    def javaScriptConsoleMessage(self, level: Any, message: str, line: int, source: str) -> None:
        self.complaints.append(f"{level.name} in line {line}: {message}")


def look(
    file: Path, width: int, height: int, tabs: list[str], picture: Path | None, script: str | None
) -> dict[str, Any]:
    """What there is to see in some tabs, or in all; `picture`: where the last one is drawn; `script`: what is computed
    in the page, at the end."""
    app = QApplication(sys.argv[:1])
    view = QWebEngineView()
    page = Page(view)
    view.setPage(page)
    view.resize(width, height)
    view.show()
    found: dict[str, Any] = {"complaints": page.complaints, "seen": []}

    def began(facts: dict[str, Any]) -> None:
        found.update(facts)
        walk(tabs or facts["tabs"])

    def computed(value: Any) -> None:
        found["computed"] = value
        app.quit()

    def walk(rest: list[str]) -> None:
        if not rest:
            if picture is not None:
                view.grab().save(str(picture))
            if script is None:
                app.quit()
            else:
                page.runJavaScript(script, computed)
            return

        def seen(what: dict[str, Any]) -> None:
            found["seen"].append(what)
            QTimer.singleShot(DRAWN, lambda: walk(rest[1:]))

        page.runJavaScript(f"{SHOW}({json.dumps(rest[0])})", seen)

    page.loadFinished.connect(lambda _: QTimer.singleShot(DRAWN, lambda: page.runJavaScript(FACTS, began)))
    view.load(QUrl.fromLocalFile(str(file.resolve())))
    QTimer.singleShot(MOST, app.quit)
    app.exec()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.runtime.browser", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", default="1400x1000")
    parser.add_argument("--tab", action="append", default=[])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--script")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    print(json.dumps(look(options.file, width, height, options.tab, options.picture, options.script)), flush=True)
    os._exit(0)  # what Qt frees at the end of a process is not looked at
