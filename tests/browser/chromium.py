"""A headless Chromium driven over its own pipe: no driver library, no port, no network.

Protocol: Chrome DevTools Protocol over `--remote-debugging-pipe`, JSON messages ended by NUL, read on descriptor 3 and written on 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_BOUND_S = 60
_LAUNCH = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives the pipe's ends the numbers that the browser wants, whatever they have here."""
KEYS = {"Escape": 27, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "/": 191}

_COLOURS = """(async () => {
    const picture = await createImageBitmap(await (await fetch('data:image/png;base64,%s')).blob());
    const context = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    context.drawImage(picture, 0, 0);
    const data = context.getImageData(0, 0, picture.width, picture.height).data;
    const found = new Set();
    for (let at = 0; at < data.length; at += 4) found.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return [picture.width, picture.height, [...found].map((one) => '#' + one.toString(16).padStart(6, '0'))];
})()"""


def find() -> str | None:
    """The browser of this machine: `CALIPER_CHROMIUM`, or one of the usual names."""
    named = [name for name in (os.environ.get("CALIPER_CHROMIUM"), *_NAMES, *_PLACES) if name]
    return next((found for name in named if (found := shutil.which(name))), None)


class Browser:
    """One browser with one tab. Every console message, exception and request of the tab is kept."""

    def __init__(self, program: str, root: Path, *, width: int = 1280, height: int = 900) -> None:
        self._to_read, self._to_write = os.pipe()
        self._from_read, self._from_write = os.pipe()
        self._root = Path(tempfile.mkdtemp(dir=root))
        command = [
            program,
            "--headless=new",
            "--no-sandbox",  # CI runs as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-default-browser-check",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            "--force-device-scale-factor=1",
            f"--window-size={width},{height}",
            f"--user-data-dir={self._root}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        with open(self._root / "log", "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LAUNCH, str(self._to_read), str(self._from_write), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._to_read, self._from_write),
                env={
                    **os.environ,
                    "HOME": str(self._root),
                    "XDG_CONFIG_HOME": str(self._root),
                    "XDG_CACHE_HOME": str(self._root),
                },
            )
        os.close(self._to_read)
        os.close(self._from_write)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        try:
            self._attach(width, height)
        except BaseException:
            self.close()
            raise

    def _attach(self, width: int, height: int) -> None:
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.size(width, height)

    def close(self) -> None:
        """End the browser and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to_write)
        os.close(self._from_read)
        shutil.rmtree(self._root, ignore_errors=True)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command; what happens meanwhile is kept. RuntimeError when the browser refuses or ends."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to_write, json.dumps(message).encode() + b"\0")
        number = self._number
        while True:
            found = self._receive()
            if found.get("id") == number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return dict(found["result"])

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + _BOUND_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from_read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._from_read, 1 << 16) if ready else b""
            if not data:
                log = (self._root / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the browser ended or does not answer:\n{log}")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._keep(message.get("method"), message.get("params") or {})
        return message

    def _keep(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.console.append(f"{params['type']}: {' '.join(str(arg.get('value')) for arg in params['args'])}")
        elif method == "Runtime.exceptionThrown":
            self.console.append(f"exception: {json.dumps(params['exceptionDetails'])[:500]}")
        elif method == "Log.entryAdded":
            self.console.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.console.append(f"dialog: {params['message']}")
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file anew and wait until all of it is there."""
        self.send("Page.navigate", url="about:blank")
        self.console.clear()
        self.requests.clear()
        self._loaded = False
        self.send("Page.navigate", url=page.as_uri() + (f"#{fragment}" if fragment else ""))
        while not self._loaded:
            self._receive()
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:1000])
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + _BOUND_S
        while not self.run(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}")
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        """Press keys, as a person does."""
        for key in keys:
            code = KEYS.get(key) or ord(key.upper())
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            common = {"key": key, "windowsVirtualKeyCode": code, "code": key if len(key) > 1 else f"Key{key.upper()}"}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
            self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector: str) -> None:
        """Click the middle of the first element of that selector."""
        script = f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            found.scrollIntoView({{block: 'center'}});
            const box = found.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()"""
        x, y = self.run(script)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefers(self, scheme: str) -> None:
        """`dark` or `light`; and that nothing moves by itself."""
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path, *, whole: bool = False) -> bytes:
        """PNG of what is seen, or of the whole page; also written to `path`."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        data = base64.b64decode(shot["data"])
        path.write_bytes(data)
        return data

    def colours(self, png: bytes) -> tuple[int, int, set[str]]:
        """Width, height and colours (`#ffffff`) of a picture. Leaves the page."""
        self.send("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        width, height, colours = self.run(_COLOURS % base64.b64encode(png).decode())
        return width, height, set(colours)

    def script(self, allowed: bool) -> None:
        """Whether pages opened from now on may run theirs."""
        self.send("Emulation.setScriptExecutionDisabled", value=not allowed)
