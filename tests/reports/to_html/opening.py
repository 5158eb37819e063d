"""Open pages of a report in a browser, and ask what they show."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from ioprism import Report

WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
# Counts what a page has put off to a later moment: pictures to draw and timers of up to a second.
COUNT_PENDING = """(() => {
  const pending = new Set();
  const counted = (start, cancel, counts) => {
    const begin = window[start], end = window[cancel];
    window[start] = (work, after, ...rest) => {
      const id = begin(
        (...given) => { pending.delete(start + id); work(...given); }, after, ...rest);
      if (counts(after)) pending.add(start + id);
      return id;
    };
    window[cancel] = (id) => { pending.delete(start + id); end(id); };
  };
  counted('setTimeout', 'clearTimeout', (after) => !(after > 1000));
  counted('requestAnimationFrame', 'cancelAnimationFrame', () => true);
  window.nothingPending = () => pending.size === 0;
})()"""


def written(report: Report, folder: Path, name: str = "page.html") -> Path:
    """Return a report's page as a file."""
    path = folder / name
    report.to_html(path)
    return path


def opened(screen: Page, path: Path, *, link: str = "", size: dict[str, int] | None = None) -> Page:
    """Return the page once its first picture is there."""
    screen.set_default_timeout(20_000)
    screen.set_viewport_size(size or WIDE)  # type: ignore[arg-type]
    screen.add_init_script(COUNT_PENDING)
    screen.goto(path.as_uri() + link)
    screen.wait_for_selector("html[data-ready]", state="attached")
    return screen


def settled(page: Page) -> Page:
    """Wait until movements, details and the link have followed."""
    # Events of the last input come first; a timer may ask for a picture, and that for another.
    for _ in range(3):
        page.evaluate("() => new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))")
        page.wait_for_function("() => nothingPending()", polling=10)
    return page


def row_middle(page: Page, key: str) -> tuple[float, float]:
    """Return the left edge of the charts and the height at which a row is, in the window."""
    left, top = page.evaluate(
        """(key) => { const { pane } = ioprism, box = pane.stage.getBoundingClientRect();
        const n = pane.layout.rows.findIndex((row) => row.key === key);
        return [box.left + pane.left, box.top + pane.layout.tops[n]
          + pane.layout.rows[n].height / 2 - pane.scroll.scrollTop]; }""",
        key,
    )
    return float(left), float(top)


def painted(page: Page, place: str, key: str) -> int:
    """How many pixels of a row are not empty."""
    return int(
        page.evaluate(
            """([place, key]) => { const { pane } = ioprism, ratio = devicePixelRatio;
            const n = pane.layout.rows.findIndex((row) => row.key === key);
            const canvas = document.querySelector(`${place} canvas`);
            const copy = new OffscreenCanvas(canvas.width, canvas.height);
            const pen = copy.getContext('2d', { willReadFrequently: true });
            pen.drawImage(canvas, 0, 0);
            const d = pen.getImageData(pane.left * ratio,
              (pane.layout.tops[n] - pane.scroll.scrollTop) * ratio, pane.width * ratio,
              Math.max(1, (pane.layout.rows[n].height - 2) * ratio)).data;
            let sum = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) sum += 1; return sum; }""",
            [place, key],
        )
    )


def span(page: Page) -> tuple[float, float]:
    """The time in view."""
    low, high = page.evaluate("() => [ioprism.axis.low, ioprism.axis.high]")
    return float(low), float(high)
