#!/usr/bin/env python3
"""Pages in a real browser: they load without a complaint, show the timeline that was simulated, zoom, tell what is under
the pointer, and take every name for text. Screenshots stay behind as evidence.

usage: page_test.py STAGECRAFT SOURCE_DIR EVIDENCE_DIR [CLASS[.TEST]]
"""
import base64
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser  # noqa: E402

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
EVIDENCE = Path(sys.argv[3]).resolve()
FLAGSHIP = SOURCE / "scenarios/gpt3-175b-1024xA100.yaml"
SMALL = SOURCE / "scenarios/pipeline-4x8.yaml"
SHARED = SOURCE / "scenarios/llama3-70b-128xH100-shared-links.yaml"
EVIL = "<script>alert(1)</script>"
CTRL = 2

# 64 ranks, 8,000 micro-batches, forwards and backwards: 1,024,000 slices, and the idle ones beside them.
MILLION = f"""\
stagecraft: 1
name: "a million slices {EVIL}"
model: {{family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}}
parallelism: {{pipeline: 64}}
schedule: 1f1b
training: {{global_batch_size: 8000, micro_batch_size: 1}}
"""

# Pans in steps of a 250th of the screen for as many frames; frames per second, and milliseconds of the longest.
PAN = """(async frames => {
  const view = stagecraft.timeline, span = view.end / 2;
  view.show(view.end * 0.1, view.end * 0.1 + span);
  await new Promise(requestAnimationFrame);
  const begun = performance.now();
  let last = begun, longest = 0;
  for (let i = 0; i < frames; ++i) {
    view.pan(span / 250);
    await new Promise(requestAnimationFrame);
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }
  return [1000 * frames / (last - begun), longest];
})(90)"""

# Slices of the page's lanes that are tasks, by "rank, stream": [start, end, name, micro-batch, stage].
SLICES = """stagecraft.timeline.sections[0].data.lanes.map(lane => {
  const data = stagecraft.timeline.sections[0].data;
  return [`${data.names[lane.rank]}, ${lane.name}`, [...lane.start].map((start, i) => {
    const label = data.labels[lane.label[i]];
    return [start, lane.end[i], label.name, lane.microBatch[i], label.stage ?? -1, label.paint];
  })];
})"""
BUBBLE = 9  # the first paint of idle slices


def run(*words):
    return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=300)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(height=1400)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        EVIDENCE.mkdir(parents=True, exist_ok=True)

    def page(self, *words, name="page.html"):
        file = self.folder / name
        ran = run(*words, "--html", file, "--force", "--quiet")
        self.assertEqual("", ran.stderr)
        self.assertTrue(file.exists())
        return file

    def opened(self, file, dark=False):
        self.browser.set_media("dark" if dark else "light")
        self.browser.open(file)
        self.assertEqual([], self.browser.complaints())
        return self.browser

    def timeline_at(self, browser):
        """Left, top, width, height of the canvas on the screen."""
        browser.evaluate("document.querySelector('.timeline canvas').scrollIntoView({block: 'start'})")
        return browser.evaluate(
            "(box => [box.left, box.top, box.width, box.height])(document.querySelector('.timeline canvas').getBoundingClientRect())")


class Pages(Case):
    def test_load_without_a_complaint_in_light_and_dark(self):
        for scenario in (FLAGSHIP, SMALL, SHARED):
            file = self.page("run", scenario)
            for dark in (False, True):
                with self.subTest(scenario.stem, dark=dark):
                    self.opened(file, dark).screenshot(EVIDENCE / f"{scenario.stem}-{'dark' if dark else 'light'}.png")

    def test_the_flagship_is_small_and_the_same_bytes_again(self):
        page = self.page("run", FLAGSHIP)
        self.assertLess(page.stat().st_size, 3_000_000)
        again = page.read_bytes()
        self.assertEqual(again, self.page("run", FLAGSHIP).read_bytes())
        self.assertNotRegex(page.read_text(), r"https?://(?!www\.w3\.org/2000/svg)")

    def test_slices_are_the_tasks_of_the_trace(self):
        trace = self.folder / "trace.json"
        for scenario in (SMALL, FLAGSHIP):
            with self.subTest(scenario.stem):
                self.assertEqual("", run("run", scenario, "--trace", trace, "--force", "--quiet").stderr)
                ranks, streams, tasks = {}, {}, {}
                for event in json.loads(trace.read_text())["traceEvents"]:
                    if event["name"] == "process_name":
                        ranks[event["pid"]] = event["args"]["name"]
                    elif event["name"] == "thread_name":
                        streams[event["pid"], event["tid"]] = event["args"]["name"]
                    elif event["ph"] == "X" and ranks[event["pid"]] != "critical path":
                        start, time = round(event["ts"] * 1000), round(event["dur"] * 1000)
                        row = f"{ranks[event['pid']]}, {streams[event['pid'], event['tid']]}"
                        tasks.setdefault(row, []).append(
                            [start, start + time, event["name"], event["args"].get("micro-batch", -1), event["args"].get("stage", -1)])
                browser = self.opened(self.page("run", scenario))
                shown = {row: [slice[:5] for slice in slices if slice[5] < BUBBLE] for row, slices in browser.evaluate(SLICES)}
                self.assertEqual(tasks, shown)

    def test_idle_time_of_a_pipeline_is_bubble(self):
        """4 stages, 8 micro-batches, F 1 ms, B 2 ms: 33 ms, of which each rank works 24 ms."""
        browser = self.opened(self.page("run", SMALL))
        for row, slices in browser.evaluate(SLICES):
            self.assertEqual(33_000_000, slices[-1][1], row)
            self.assertEqual(9_000_000, sum(end - start for start, end, *_, paint in slices if paint >= BUBBLE), row)

    def test_tell_what_is_under_the_pointer(self):
        browser = self.opened(self.page("run", FLAGSHIP))
        left, top, _, _ = self.timeline_at(browser)
        browser.evaluate("stagecraft.timeline.show(0.9e9, 1.1e9)")
        browser.mouse("mouseMoved", left + 330, top + 36)
        told = browser.evaluate("document.querySelector('.tip').innerText")
        for words in ("F · forward", "micro-batch", "stage 0", "embedding, layers 0–5 of 96", "2048 × 1 × 12288", "tensor", "interpolated"):
            self.assertIn(words, told)
        browser.screenshot(EVIDENCE / "hover.png")
        browser.mouse("mouseMoved", left + 20, top + 5)
        self.assertTrue(browser.evaluate("document.querySelector('.tip').hidden"))

    def test_zoom_at_the_pointer_move_and_come_back(self):
        span = "[stagecraft.timeline.from, stagecraft.timeline.to]"
        browser = self.opened(self.page("run", SMALL))
        left, top, width, _ = self.timeline_at(browser)
        middle = left + 150 + (width - 150) / 2
        browser.mouse("mouseWheel", middle, top + 60, deltaX=0, deltaY=-300, modifiers=CTRL)
        begin, end = browser.evaluate(span)
        self.assertLess(end - begin, 33e6 / 2)
        self.assertAlmostEqual((begin + end) / 2, 33e6 / 2, delta=33e6 / 100)
        browser.mouse("mousePressed", middle, top + 60, button="left", buttons=1, clickCount=1)
        browser.mouse("mouseMoved", middle - 200, top + 60, button="left", buttons=1)
        browser.mouse("mouseReleased", middle - 200, top + 60, button="left", clickCount=1)
        moved = browser.evaluate(span)
        self.assertGreater(moved[0], begin)
        self.assertAlmostEqual(moved[1] - moved[0], end - begin, delta=1)
        browser.evaluate("document.querySelector('.timeline canvas').focus()")
        browser.key("0")
        self.assertEqual([0, 33e6], browser.evaluate(span))
        browser.key("+")
        browser.key("ArrowRight")
        self.assertGreater(browser.evaluate(span)[0], 33e6 / 4)
        browser.key("n")
        self.assertRegex(browser.evaluate("document.querySelector('.status').textContent"), "rank 0 · compute")

    def test_names_are_text_everywhere(self):
        scenario = self.folder / "evil.yaml"
        scenario.write_text(MILLION.replace("8000", "70") + f"# {EVIL}\n")
        file = self.page("run", scenario, "--set", f'name="{EVIL}</title><img src=x onerror=alert(2)> & \\"quoted\\""')
        self.assertEqual(2, file.read_text().count("<script"), "the data and the program")
        browser = self.opened(file)
        self.assertEqual(2, browser.evaluate("document.scripts.length"))
        self.assertEqual(0, browser.evaluate("document.images.length"))
        heading = browser.evaluate("document.querySelector('h1').textContent")
        self.assertEqual(f'{EVIL}</title><img src=x onerror=alert(2)> & "quoted"', heading)
        self.assertTrue(browser.evaluate("document.title").startswith(heading))
        self.assertIn(EVIL, browser.evaluate("document.querySelector('main').innerText"))
        self.assertFalse([event for event in browser.events if event["method"] == "Page.javascriptDialogOpening"])
        browser.screenshot(EVIDENCE / "names-are-text.png")

    def test_print_on_paper(self):
        browser = self.opened(self.page("run", SMALL), dark=True)
        paper = base64.b64decode(browser.call("Page.printToPDF", {"printBackground": True, "landscape": True})["data"])
        self.assertTrue(paper.startswith(b"%PDF"))
        (EVIDENCE / "paper.pdf").write_bytes(paper)


class Million(Case):
    """Targets: the first paint within 1 s, 30 frames a second while panning, with 1 M slices. Both are printed. A machine
    that does other things as well is slower than what it measures: what is asserted is four times the first paint, and a
    third of the frames."""

    def test_slices_appear_within_a_second_and_move_smoothly(self):
        scenario = self.folder / "million.yaml"
        scenario.write_text(MILLION)
        file = self.page("run", scenario)
        browser = self.opened(file)
        slices = sum(browser.evaluate("stagecraft.timeline.sections[0].data.lanes.map(lane => lane.start.length)"))
        self.assertGreater(slices, 1_000_000)
        paint = browser.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        drawn = browser.evaluate("performance.getEntriesByName('stagecraft-drawn')[0].startTime")
        rate, longest = browser.evaluate(PAN)
        print(f"{slices:,} slices, {file.stat().st_size / 1e6:.2f} MB: first paint {paint:.0f} ms, drawn {drawn:.0f} ms, "
              f"pan {rate:.0f} frames/s, longest frame {longest:.0f} ms")
        self.assertLess(paint, 4 * 1000)
        self.assertGreater(rate, 30 / 3)
        browser.screenshot(EVIDENCE / "million.png")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
