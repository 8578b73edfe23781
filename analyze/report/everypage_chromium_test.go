package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
