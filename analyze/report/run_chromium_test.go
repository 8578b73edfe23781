package report_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// looked is the result of lookScript.
type looked struct {
	Width, Room   float64  // of the page, and of the window
	Headings      []string // in order
	Text          string
	Foreign       int // elements that our pages do not use
	Figures       int
	Empty         []string // figures that are small, or have no colour outside the legend
	Cut           []string // texts that extend beyond their figure
	Overlapping   []string // headings that overlap the element above
	Spilled       []string // tables that extend beyond their scrolling area
	FirstIsOnPage bool     // the verdict is visible without scrolling
}

const lookScript = `(() => {
	const seen = {width: document.documentElement.scrollWidth, room: window.innerWidth, empty: [], cut: [], overlapping: [], spilled: []};
	const headings = [...document.querySelectorAll("h2")];
	seen.headings = headings.map(h => h.textContent);
	seen.text = document.body.innerText;
	seen.foreign = document.querySelectorAll("body > :not(script) script, head script, img, iframe, object, embed, link, form, b, i, u").length;
	seen.figures = 0;
	for (const svg of document.querySelectorAll("svg")) {
		const box = svg.getBoundingClientRect();
		const grey = ["rgb(255, 255, 255)", "rgb(231, 233, 236)", "rgb(144, 151, 161)", "rgb(63, 70, 80)", "none"]; // paper, grid, axes, marks
		const coloured = [...svg.querySelectorAll("path")].filter(e => { const s = getComputedStyle(e); return !(grey.includes(s.stroke) && grey.includes(s.fill)); });
		const sizes = coloured.map(e => { const b = e.getBBox(); return b.width + b.height; });
		const drawn = sizes.some(size => size > 60) || sizes.filter(size => size == 0).length > 3; // a line, or single dots
		seen.figures++;
		if (box.width < 250 || box.height < 120 || !drawn) seen.empty.push(svg.getAttribute("aria-label"));
		for (const text of svg.querySelectorAll("text")) {
			const b = text.getBoundingClientRect();
			if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1)
				seen.cut.push(svg.getAttribute("aria-label") + ": " + text.textContent);
		}
	}
	for (const h of headings) {
		const before = h.previousElementSibling.getBoundingClientRect();
		if (h.getBoundingClientRect().top < before.bottom) seen.overlapping.push(h.textContent);
	}
	for (const wide of document.querySelectorAll(".wide")) {
		const b = wide.getBoundingClientRect();
		if (b.right > window.innerWidth + 1 || wide.scrollWidth > wide.clientWidth + 1 && getComputedStyle(wide).overflowX != "auto")
			seen.spilled.push(wide.textContent.slice(0, 80));
	}
	seen.firstIsOnPage = headings[0].getBoundingClientRect().bottom < window.innerHeight;
	return seen;
})()`

// The page renders completely at desktop and phone width, loads nothing, and runs no
// script but its own.
func TestRunPageInChromium(t *testing.T) {
	c := newChromium(t)
	url := pageFile(t)
	for _, width := range []int{1280, 400} {
		c.open(url, width)
		var saw looked
		c.evaluate(lookScript, &saw)
		c.harmless(url)
		if saw.Width > saw.Room {
			t.Errorf("in a window of %v the page is %v wide", saw.Room, saw.Width)
		}
		if saw.Figures != 17 || len(saw.Empty) > 0 || len(saw.Cut) > 0 {
			t.Errorf("%d wide: %d figures, empty are %q, cut are %q", width, saw.Figures, saw.Empty, saw.Cut)
		}
		if len(saw.Headings) < 6 || saw.Headings[0] != "Verdict: INVALID" || !saw.FirstIsOnPage && width > 400 {
			t.Errorf("%d wide: sections %q, the first one is seen at once: %v", width, saw.Headings, saw.FirstIsOnPage)
		}
		if saw.Foreign > 0 || len(saw.Overlapping) > 0 || len(saw.Spilled) > 0 {
			t.Errorf("%d wide: %d elements are not the page's, overlapping %q, spilled %q", width, saw.Foreign, saw.Overlapping, saw.Spilled)
		}
		for _, hostile := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(2)>`, "<script>alert(5)</script>", "<b>bold</b>", "javascript:alert(4)"} {
			if !strings.Contains(saw.Text, hostile) {
				t.Errorf("%d wide: %s is not told as it is", width, hostile)
			}
		}
	}
}

func pageFile(t *testing.T) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(page(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + filepath.ToSlash(file)
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

// In print, no figure is cut by a page break, two figures stand side by side,
// and no table extends beyond the paper.
func TestRunPageOnPaper(t *testing.T) {
	c := newChromium(t)
	const width, height = 702, 1017 // of A4 without its margins, in CSS pixels
	c.open(pageFile(t), width)
	c.do("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	var paper struct {
		Width   float64
		Figures []struct {
			Top, Height, Width float64
			Break              string
		}
		Spilled []string
	}
	c.evaluate(`(() => ({
		width: document.documentElement.scrollWidth,
		figures: [...document.querySelectorAll("svg")].map(e => { const b = e.getBoundingClientRect(); return {top: b.top, height: b.height, width: b.width, break: getComputedStyle(e).breakInside}; }),
		spilled: [...document.querySelectorAll("table")].filter(e => e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.textContent.slice(0, 80)),
	}))()`, &paper)
	if paper.Width > width || len(paper.Spilled) > 0 {
		t.Errorf("on paper of %d it is %v wide, spilled %q", width, paper.Width, paper.Spilled)
	}
	beside := 0
	for i, f := range paper.Figures {
		if f.Break != "avoid" || f.Height < 100 || f.Height > height || f.Width < 200 {
			t.Errorf("figure %d is %v by %v, break inside: %s", i, f.Width, f.Height, f.Break)
		}
		if i > 0 && f.Top < paper.Figures[i-1].Top+paper.Figures[i-1].Height {
			beside++
		}
	}
	if len(paper.Figures) != 17 || beside < 5 {
		t.Errorf("%d figures, %d beside another", len(paper.Figures), beside)
	}
	var pdf struct{ Data string }
	c.do("Page.printToPDF", map[string]any{"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true}, &pdf)
	text, err := base64.StdEncoding.DecodeString(pdf.Data)
	if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(text, -1)); err != nil || pages < 3 || pages > 9 {
		t.Errorf("%d sheets of paper, %d bytes, %v", pages, len(text), err)
	}
}
