package report_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

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
