"""A headless Chromium, driven over a pipe by Chrome's DevTools protocol; nothing but Python's standard library.

Messages are JSON texts, each ended by a zero byte; the browser reads them from file descriptor 3 and writes to 4.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

LIMIT_S = 120


def browser_program():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    raise RuntimeError("no Chromium: `apt-get install chromium`, as tools/test does (packages.txt, [test])")


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def place_pipes():
            high_read, high_write = os.dup2(to_read, 100), os.dup2(to_write, 101)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        # The browser is a leak checker's business no more than the kernel is.
        environment = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
        environment["HOME"] = self.profile.name
        self.process = subprocess.Popen(
            [browser_program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--disable-extensions", "--disable-background-networking", "--no-first-run", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=place_pipes, pass_fds=(3, 4, to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=environment)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.set_media("dark" if dark else "light")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, params=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params or {}}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer.get("result", {})
            self.events.append(answer)

    def read(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise RuntimeError("the browser says nothing any more")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def set_media(self, scheme, media=""):
        self.call("Emulation.setEmulatedMedia",
                  {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, file):
        """Loads a file and waits until its page is drawn."""
        self.events.clear()
        # A navigation may be answered while the page before it, a complete file too, still stands: that one has a mark.
        self.evaluate("window.isLeft = true")
        self.call("Page.navigate", {"url": Path(file).resolve().as_uri()})
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:' && !window.isLeft")
        # Sizes are observed, and the pointer is heard, once a frame is drawn: the second frame begins after the first.
        self.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn())))")

    def wait_for(self, expression):
        """Its value, as soon as it is a true one."""
        deadline = time.monotonic() + LIMIT_S
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the page does not come to: {expression}")
            time.sleep(0.02)
        return value

    def evaluate(self, expression):
        """The value of an expression in the page; a promise's when it is kept."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def complaints(self):
        """Errors and warnings of the page, and everything that it asked a network for."""
        self.evaluate("0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
            if event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            if event.get("method") == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:")):
                    found.append(f"asks the network for {url}")
        return found

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def key(self, key):
        more = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **more})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def screenshot(self, file, whole=False):
        answer = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        Path(file).write_bytes(base64.b64decode(answer["data"]))
