package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
