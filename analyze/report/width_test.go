package report_test

import (
	"bytes"
	"errors"
	"html"
	"image/png"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"moontide/analyze/report"
	"moontide/analyze/report/doc"
)

// everyReport has a document of every kind.
func everyReport(t *testing.T) map[string]*doc.Document {
	t.Helper()
	full := report.Dataset{Name: "example.jsonl", Analysis: analyzed(t, fullTrace())}
	all := map[string]*doc.Document{
		"runs": reported(t).Document(), "run": reported(t)[:1].Document(), "calibration": report.Calibration(calibration()),
		"engine fit": fittedEngine().Document(), "dataset": full.Document(),
		"datasets": report.Comparison{full, {Name: "bare.jsonl", Analysis: analyzed(t, bareTrace())}}.Document(),
	}
	for name, c := range comparisons(t) {
		all["comparison "+name] = c.Document()
	}
	for name, s := range sets(t) {
		all["set "+name] = s.Document()
	}
	return all
}

func textOf(t *testing.T, d *doc.Document, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := (doc.Terminal{Width: width}).Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wordCounts counts the words of a text. Padding between and around them differs
// between widths.
func wordCounts(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		if word = strings.TrimSuffix(strings.Trim(word, "=-"), ":"); word != "" {
			counts[word]++
		}
	}
	return counts
}

// No line is wider than the terminal, and at no width is a word or a number cut or
// lost.
func TestEveryWidth(t *testing.T) {
	for name, d := range everyReport(t) {
		whole := wordCounts(textOf(t, d, 1000))
		for width := 40; width <= 200; width += 1 + width/20 {
			text := textOf(t, d, width)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && len(strings.Fields(line)) > 1 {
					t.Errorf("%s: %d columns of %d: %q", name, n, width, line)
				}
			}
			got := wordCounts(text)
			for word, n := range whole {
				if got[word] < n {
					t.Errorf("%s at %d columns has %q %d times, want %d", name, width, word, got[word], n)
				}
			}
			for word := range got {
				if whole[word] == 0 {
					t.Errorf("%s at %d columns has the part %q of a word", name, width, word)
				}
			}
		}
	}
}

// Every kind of report can be drawn, and no form hides a full disk.
func TestEveryForm(t *testing.T) {
	drawn := map[string]bool{}
	for name, d := range everyReport(t) {
		kind, _, _ := strings.Cut(name, " ")
		forms := map[string]func(io.Writer) error{"text": d.WriteText, "Markdown": d.WriteMarkdown, "CSV": d.WriteCSV, "HTML": d.WriteHTML}
		if kind == "calibration" {
			forms["PNG"] = d.WritePNG
		}
		for form, write := range forms {
			if err := write(fullDisk{}); !errors.Is(err, errFull) {
				t.Errorf("%s as %s on a full disk: %v", name, form, err)
			}
		}
		if drawn[kind] {
			continue
		}
		drawn[kind] = true
		if _, err := png.Decode(strings.NewReader(written(t, d.WritePNG))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Text, Markdown and pages have the same cells, notes and verdicts.
func TestEveryFormHasTheSameCells(t *testing.T) {
	for name, d := range everyReport(t) {
		forms := map[string]string{"text": textOf(t, d, 1000), "Markdown": written(t, d.WriteMarkdown), "page": written(t, d.WriteHTML)}
		for form, text := range forms {
			text = strings.NewReplacer("\\", "", "|", "", "<td class=w>", " ", "<td>", " ", "\n", " ").Replace(html.UnescapeString(text))
			text = strings.Join(strings.Fields(text), "")
			for _, part := range append(d.Parts, d) {
				for _, s := range part.Sections {
					for _, b := range s.Blocks {
						if b.Table == nil || s.Detail && form == "text" {
							continue
						}
						for _, row := range b.Table.Rows {
							cells := strings.NewReplacer("\\", "", "|", "").Replace(doc.Clean(strings.Join(row, "")))
							if !strings.Contains(text, strings.Join(strings.Fields(cells), "")) {
								t.Errorf("%s as %s has no row %q", name, form, row)
							}
						}
					}
				}
				for _, v := range part.Outcomes() {
					if !strings.Contains(text, v.Title+":"+v.Level) {
						t.Errorf("%s as %s has no %s: %s", name, form, v.Title, v.Level)
					}
				}
			}
		}
	}
}
