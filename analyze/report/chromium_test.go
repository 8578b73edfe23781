package report_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moontide/analyze/report"
)

// mouse sends an event of the left button at a place of the window.
func (c *chromium) mouse(kind string, x, y float64, clicks int) {
	c.t.Helper()
	held := map[string]int{"mousePressed": 1, "mouseReleased": 0}[kind]
	button := "left"
	if kind == "mouseMoved" {
		button = "none"
	}
	c.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": button, "buttons": held, "clickCount": clicks}, nil)
}

// On a page of two runs, the pointer shows the values of both, a brush zooms, a click on
// the legend hides a run in all figures, and a double click shows all again.
func TestPageIsInteractive(t *testing.T) {
	c := newChromium(t)
	file := filepath.Join(t.TempDir(), "report.html")
	runs := report.Runs{{Name: "one", Info: ended(4), Result: inDetail(t, answers(4))}, {Name: "two", Info: ended(6), Result: inDetail(t, answers(6))}}
	if err := os.WriteFile(file, []byte(written(t, runs.Document().WriteHTML)), 0o644); err != nil {
		t.Fatal(err)
	}
	c.open("file://"+filepath.ToSlash(file), 1280)
	var at struct{ Left, Top, Right, Bottom, X, Y float64 }
	c.evaluate(`(() => {
		const panel = document.querySelector(".panel"), m = panel.getScreenCTM(), [l, t, r, b] = panel.dataset.frame.split(" ").map(Number);
		const entry = panel.querySelector(".entry").getBoundingClientRect();
		return {left: l * m.a + m.e, top: t * m.d + m.f, right: r * m.a + m.e, bottom: b * m.d + m.f, x: entry.x + entry.width / 2, y: entry.y + entry.height / 2};
	})()`, &at)
	x := func(share float64) float64 { return at.Left + share*(at.Right-at.Left) }
	y := (at.Top + at.Bottom) / 2
	state := func() (s struct {
		Tip, Ticks string
		Hidden     int
		Transform  bool
	}) {
		c.evaluate(`(() => { const panel = document.querySelector(".panel"); return {
			tip: document.querySelector("#tip").innerText,
			ticks: [...panel.querySelectorAll("text")].filter(e => e.checkVisibility()).map(e => e.textContent).join("|"),
			hidden: [...document.querySelectorAll('.series[data-name="one"]')].filter(e => getComputedStyle(e).display == "none").length,
			transform: panel.querySelector(".plot").hasAttribute("transform"),
		}; })()`, &s)
		return s
	}
	start := state()
	c.mouse("mouseMoved", x(0.6), y, 0)
	if tip := state().Tip; !strings.Contains(tip, "one") || !strings.Contains(tip, "two") || !strings.Contains(tip, "%") {
		t.Errorf("the pointer shows %q", tip)
	}
	c.mouse("mouseMoved", x(0.2), y, 0)
	c.mouse("mousePressed", x(0.2), y, 1)
	c.mouse("mouseMoved", x(0.5), y, 0)
	c.mouse("mouseReleased", x(0.5), y, 1)
	if s := state(); !s.Transform || s.Ticks == start.Ticks {
		t.Errorf("after a brush: transformed %v, ticks %s", s.Transform, s.Ticks)
	}
	c.mouse("mouseMoved", at.X, at.Y, 0)
	c.mouse("mousePressed", at.X, at.Y, 1)
	c.mouse("mouseReleased", at.X, at.Y, 1)
	if s := state(); s.Hidden < 3 {
		t.Errorf("%d figures hide the run", s.Hidden)
	}
	c.mouse("mousePressed", at.X, at.Y, 1)
	c.mouse("mouseReleased", at.X, at.Y, 1)
	for clicks := 1; clicks <= 2; clicks++ {
		c.mouse("mousePressed", x(0.5), y, clicks)
		c.mouse("mouseReleased", x(0.5), y, clicks)
	}
	if s := state(); s.Transform || s.Hidden > 0 || s.Ticks != start.Ticks {
		t.Errorf("in the end: %s, at first: %s", fmt.Sprint(s), fmt.Sprint(start))
	}
	c.harmless("file://" + filepath.ToSlash(file))
}

// flawsScript returns what a reader would call broken: a page or a table that is wider
// than the window, words broken in the middle, and labels of figures that are cut off or
// lie on each other.
const flawsScript = `(() => {
	const flaws = [], box = e => e.getBoundingClientRect(), shown = e => e.checkVisibility() && box(e).width > 0;
	if (document.documentElement.scrollWidth > innerWidth) flaws.push("the page is " + document.documentElement.scrollWidth + " wide");
	for (const e of document.querySelectorAll("body > :not(script) script, head script, img, iframe, object, embed, link, form, b, i, u")) flaws.push("foreign: " + e.outerHTML);
	for (const e of document.querySelectorAll(".wide")) if (box(e).right > innerWidth + 1) flaws.push("spilled: " + e.innerText.slice(0, 60));
	for (const e of document.querySelectorAll("h1, h2, .headlines strong")) {
		const r = document.createRange();
		for (const text of [...e.childNodes].filter(n => n.nodeType == Node.TEXT_NODE)) for (const word of text.data.matchAll(/\S+/g)) {
			r.setStart(text, word.index); r.setEnd(text, word.index + word[0].length);
			if (r.getClientRects().length > 1 && word[0].length < 20) flaws.push("broken word: " + word[0]);
		}
	}
	for (const svg of document.querySelectorAll("svg")) {
		const name = svg.getAttribute("aria-label") + ": ", all = box(svg), texts = [...svg.querySelectorAll("text")].filter(shown);
		texts.forEach((text, i) => {
			const a = box(text);
			if (a.left < all.left - 1 || a.right > all.right + 1 || a.top < all.top - 1 || a.bottom > all.bottom + 1) flaws.push(name + "cut: " + text.textContent);
			for (const other of texts.slice(0, i)) {
				const b = box(other), wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
				if (wide > 0.5 && high > 0.25 * Math.min(a.height, b.height)) flaws.push(name + text.textContent + " is on " + other.textContent); // lines have room above and below their letters
			}
		});
	}
	return flaws;
})()`

// Every kind of page, and that of a run with hostile names, is readable at desktop and phone
// width and on paper, loads nothing, and runs no script but its own.
func TestEveryPageInChromium(t *testing.T) {
	c := newChromium(t)
	pages := map[string]string{"hostile": page(t)}
	for name, d := range everyReport(t) {
		pages[name] = written(t, d.WriteHTML)
	}
	for name, text := range pages {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, view := range []struct {
			media string
			width int
		}{{"screen", 1280}, {"screen", 400}, {"print", 702}} {
			c.do("Emulation.setEmulatedMedia", map[string]any{"media": view.media}, nil)
			c.open("file://"+filepath.ToSlash(file), view.width)
			var flaws []string
			c.evaluate(flawsScript, &flaws)
			c.harmless("file://" + filepath.ToSlash(file))
			if len(flaws) > 0 {
				t.Errorf("%s, %s of %d:\n\t%s", name, view.media, view.width, strings.Join(flaws, "\n\t"))
			}
		}
	}
}

// harmless fails if the page did more than display.
func (c *chromium) harmless(url string) {
	c.t.Helper()
	for _, e := range c.events {
		switch e.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening":
			c.t.Errorf("%s: %s", e.Method, e.Params)
		case "Network.requestWillBeSent":
			var sent struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &sent); err != nil || sent.Request.URL != url {
				c.t.Errorf("the page asks for %q, %v", sent.Request.URL, err)
			}
		}
	}
}

// browsers lists the names of Chromium. The variable CHROMIUM overrides them.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell", "headless_shell"}

// chromium is a headless browser with one tab. Messages of the DevTools protocol
// end with a zero byte.
type chromium struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	last    int    // last message sent
	session string // of the tab
	events  []event
}

// event is an unsolicited message from the browser.
type event struct {
	Method string
	Params json.RawMessage
}

// newChromium starts a browser, and skips the test if none is installed. The
// one named by CHROMIUM must work.
func newChromium(t *testing.T) *chromium {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	for i := 0; path == "" && i < len(browsers); i++ {
		path, _ = exec.LookPath(browsers[i])
	}
	if path == "" || runtime.GOOS == "windows" {
		t.Skip("Chromium is not installed, or no pipe can be handed to it; the variable CHROMIUM names it")
	}
	limited, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := exec.CommandContext(limited, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	theirs, to := pipe(t)
	from, answers := pipe(t)
	cmd.ExtraFiles = []*os.File{theirs, answers} // 3 and 4, as the protocol requires
	var said strings.Builder
	cmd.Stderr, cmd.WaitDelay = &said, 5*time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("%s: %v", path, err)
	}
	theirs.Close()
	answers.Close()
	c := &chromium{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		io.WriteString(to, `{"id": 0, "method": "Browser.close"}`+"\x00")
		to.Close()
		io.Copy(io.Discard, c.from) // until it exits or times out
		cancel()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %.2000s", path, said.String())
		}
	})
	if err := c.try("Browser.getVersion", nil, nil); err != nil {
		if os.Getenv("CHROMIUM") == "" {
			t.Skipf("%s does not run here: %v: %.500s", path, err, said.String())
		}
		t.Fatalf("%s does not run: %v", path, err)
	}
	var target struct{ TargetID, SessionID string }
	c.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	c.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	c.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.do(domain+".enable", nil, nil)
	}
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// do calls a method of the protocol and decodes its answer into result.
func (c *chromium) do(method string, params, result any) {
	c.t.Helper()
	if err := c.try(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *chromium) try(method string, params, result any) error {
	asked, err := c.ask(method, params)
	if err != nil {
		return err
	}
	for {
		answer, err := c.read()
		switch {
		case err != nil:
			return err
		case answer.ID != asked:
			continue
		case answer.Error.Message != "":
			return errors.New(answer.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
}

// ask sends a message and returns its number, which the answer repeats.
func (c *chromium) ask(method string, params any) (number int, err error) {
	c.last++
	asked := map[string]any{"id": c.last, "method": method}
	if params != nil {
		asked["params"] = params
	}
	if c.session != "" {
		asked["sessionId"] = c.session
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return 0, err
	}
	_, err = c.to.Write(append(text, 0))
	return c.last, err
}

type message struct {
	event
	ID     int
	Result json.RawMessage
	Error  struct{ Message string }
}

// read reads the next message and stores events. It closes dialogs, which would
// block the page.
func (c *chromium) read() (m message, err error) {
	text, err := c.from.ReadBytes(0)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		return m, err
	}
	if m.Method != "" {
		c.events = append(c.events, m.event)
	}
	if m.Method == "Page.javascriptDialogOpening" {
		_, err = c.ask("Page.handleJavaScriptDialog", map[string]any{"accept": true})
		return m, err
	}
	return m, nil
}

// open loads a page in a window of the given width and waits until it is
// complete.
func (c *chromium) open(url string, width int) {
	c.t.Helper()
	c.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	c.events = nil
	c.do("Page.navigate", map[string]any{"url": url}, nil)
	for i := 0; ; i++ {
		for ; i < len(c.events); i++ {
			if c.events[i].Method == "Page.loadEventFired" {
				return
			}
		}
		i--
		if _, err := c.read(); err != nil {
			c.t.Fatalf("waiting for the page: %v", err)
		}
	}
}

// evaluate runs a script in the page, and reads its value.
func (c *chromium) evaluate(script string, value any) {
	c.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Text string }
	}
	c.do("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", script, answer.ExceptionDetails.Text)
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		c.t.Fatalf("%s: %v", script, err)
	}
}
