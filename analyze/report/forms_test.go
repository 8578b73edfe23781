package report_test

import (
	"bytes"
	"errors"
	"html"
	"image/png"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"moontide/analyze"
	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
	"moontide/replay"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
)

// gate parses a gate: a condition that must hold or, after "not ", must not.
func gate(t *testing.T, text string) slo.Gate {
	t.Helper()
	text, forbidden := strings.CutPrefix(text, "not ")
	c, err := slo.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return slo.Gate{Condition: c, Forbidden: forbidden}
}

// gated is a run with a gate that passes, and three that fail.
func gated(t *testing.T) report.Run {
	r := report.Run{Name: "gated", Info: ended(4), Result: measured(t, ended(4), answers(4))}
	r.View = viewOf(t, "mean_ttft<2s,not failed>=0,not cached_share<1%,p99_ttft<2s")
	return r
}

// invalid is a simulated run that was paced, of whose requests a tenth failed, with a note.
func invalid(t *testing.T) (report.Run, *diff.Run) {
	info := runfile.Run{Settings: settings.Settings{MaxConcurrency: 8}, Outcome: runfile.Outcome{
		Ended: time.Unix(2, 0), Rows: 40, Target: runfile.Target{Model: "m", Simulated: true},
		Notes: []string{"the trace has a note of its own"},
	}}
	records := answers(36)
	for range 4 {
		records = append(records, failure(replay.Server, "overloaded"))
	}
	for i := range records {
		records[i].Row = i
		records[i].Due = records[i].Ready - 20*time.Second
	}
	opts := measure.Options{Virtual: true, MaxConcurrency: 8}
	result, err := measure.Compute(each(records), opts)
	if err != nil {
		t.Fatal(err)
	}
	side, err := diff.Read(diff.Source{Name: "runs/b", Run: info, Measure: opts, Records: each(records)})
	if err != nil {
		t.Fatal(err)
	}
	return report.Run{Name: "invalid", Info: info, Result: result}, side
}

// estimated is a trace with a turn whose time is estimated and cannot be right.
func estimated(t *testing.T) report.Trace {
	rows := []trace.Request{
		{Timestamp: trace.Some(0.0), SessionID: "a", InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}},
		{Delay: trace.Some(99.0), SessionID: "a", InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}},
		{Timestamp: trace.Some(50.0), InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}, Extra: []byte(`{"estimated": ["input_length"]}`)},
	}
	return report.Trace{Name: hostile, Analysis: analyzed(t, rows)}
}

// everyReport has a document of every kind.
func everyReport(t *testing.T) map[string]*doc.Document {
	t.Helper()
	full := report.Trace{Name: "example.jsonl", Analysis: analyzed(t, fullTrace())}
	bad, side := invalid(t)
	judged := gated(t)
	fit := fittedEngine()
	faulty := report.Difference{Comparison: diff.Of([]*diff.Run{comparedRun(t, "runs/a", "http://a", 0, func([]replay.Record) {})}, []*diff.Run{side}, diff.Options{}), NameA: "a", NameB: "b"}
	all := map[string]*doc.Document{
		"runs": reported(t).Document(), "run": reported(t)[:1].Document(), "calibration": report.Calibration(calibration()),
		"engine fit": fit.Document(), "dataset": full.Document(), "dataset estimated": estimated(t).Document(), "dataset curves": cached(t, fullTrace(), 1, 2).Curves(),
		"datasets":    report.Traces{full, {Name: "bare.jsonl", Analysis: analyzed(t, bareTrace())}}.Document(),
		"run invalid": report.Runs{bad}.Document(), "runs invalid": report.Runs{bad, reported(t)[0]}.Document(), "block invalid": report.Runs{bad}.Block(report.VLLM),
		"comparison invalid": faulty.Document(), "set invalid": sweepOf(trial("", 8, bad.Info, bad.Result), trial("", 9, whole, sweepResult(10, 100, 1.5))).Document(),
		"run gated": report.Runs{judged}.Document(), "block gated": report.Runs{judged}.Block(report.Moreh),
		"set gated": report.SweepOf("", []experiment.Trial{trial("", 7, judged.Info, judged.Result)}, judged.View).Document(),
	}
	for name, c := range comparisons(t) {
		all["comparison "+name] = c.Document()
	}
	for name, s := range sets(t) {
		all["set "+name] = s.Document()
	}
	return all
}

// What documents of some names have. Every form has it then, by the test below.
var noted = map[string][]string{
	"invalid": {
		"INVALID", "4 of 40 requests failed", "Simulated: ", "these numbers come from the embedded simulated endpoint, not from a model",
		"Pacing: ", "paced by a limit of 8 in flight", "the trace has a note of its own.",
	},
	"gated": {
		"Gates: FAIL", "mean_ttft_ms<2000 must hold: 101.50 ms, margin 1898.50 ms", "failed>=0 must not hold: 0, margin 0",
		"cached_share<1% must not hold: 0.00 %, margin -1.00 %", "p99_ttft_ms<2000 must hold: 102.97 ms, margin 1897.03 ms: too few requests for p99: 4, needs 500 (5 beyond it)",
	},
	"slower": {"Gates: FAIL", "mean_ttft_ms>+1% must not hold: +2.02 %, margin -1.02 %", "p99_tpot_ms>+5"},
	"estimated": {
		"The times of 1 turn are estimated", "1 turn without a timestamp cannot have been sent at their position in the trace", "1 request with an estimated ISL",
	},
}

// squeezed removes what forms add to a text: escapes, marks and blanks.
func squeezed(text string) string {
	text = strings.NewReplacer(`\`, "", "|", "", `"`, "", "<td>", "", "<td class=w>", "").Replace(html.UnescapeString(text))
	return strings.Join(strings.Fields(text), "")
}

// Text, Markdown, CSV and pages have the notes, verdicts and gates with all evidence; all but
// CSV have the same cells. No form passes on control characters or markup, or hides a full
// disk, and every kind of report can be drawn.
func TestEveryForm(t *testing.T) {
	drawn := map[string]bool{}
	for name, d := range everyReport(t) {
		writers := map[string]func(io.Writer) error{"text": d.WriteText, "Markdown": d.WriteMarkdown, "CSV": d.WriteCSV, "page": d.WriteHTML}
		for form, write := range writers {
			raw := written(t, write)
			if form == "text" {
				raw = textOf(t, d, 1000)
			}
			if err := write(fullDisk{}); !errors.Is(err, errFull) {
				t.Errorf("%s as %s on a full disk: %v", name, form, err)
			}
			if at := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]").FindString(raw); at != "" {
				t.Errorf("%s as %s has a control character %q", name, form, at)
			}
			if form == "page" {
				body, script, _ := strings.Cut(raw, "<script>")
				if bad := regexp.MustCompile(`<(script|img|b|i|u|link|iframe)[ >]|@import|NaN|Inf\b`).FindString(body); bad != "" || strings.Contains(script, "<script") {
					t.Errorf("the page of %s has %q", name, bad)
				}
			}
			text := squeezed(raw)
			has := func(what, part string) {
				if !strings.Contains(text, squeezed(doc.Clean(part))) {
					t.Errorf("%s as %s has no %s %q", name, form, what, part)
				}
			}
			for _, part := range append(d.Parts, d) {
				for _, n := range part.Notes {
					has("note", n.String())
				}
				for _, v := range part.Outcomes() {
					has("outcome", v.Title+": "+v.Level)
					for _, e := range v.Evidence {
						has("evidence", e.Text)
					}
				}
				for _, s := range part.Sections {
					for _, b := range s.Blocks {
						if b.Note != nil {
							has("note", b.Note.String())
						}
						if b.Table == nil || form == "CSV" || s.Detail && form == "text" {
							continue
						}
						for _, row := range b.Table.Rows {
							has("row", strings.Join(row, " "))
						}
					}
				}
			}
			for _, want := range noted[name[strings.LastIndex(name, " ")+1:]] {
				has("remark", want)
			}
		}
		kind, _, _ := strings.Cut(name, " ")
		if drawn[kind] {
			continue
		}
		drawn[kind] = true
		if _, err := png.Decode(strings.NewReader(written(t, d.WritePNG))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.WritePNG(fullDisk{}); !errors.Is(err, errFull) {
			t.Errorf("%s as PNG on a full disk: %v", name, err)
		}
	}
}

// JSON has the notes, verdicts and gates, too.
func TestEveryJSON(t *testing.T) {
	bad, _ := invalid(t)
	judged := gated(t)
	for name, write := range map[string]func(io.Writer) error{
		"runs invalid": report.Runs{bad, reported(t)[0]}.JSON, "runs gated": report.Runs{judged}.JSON, "comparison slower": comparisons(t)["slower"].JSON, "dataset": estimated(t).JSON,
		"set gated":   report.SweepOf("", []experiment.Trial{trial("", 7, judged.Info, judged.Result)}, judged.View).JSON,
		"set invalid": sweepOf(trial("", 8, bad.Info, bad.Result)).JSON,
	} {
		text := squeezed(written(t, write))
		for _, want := range noted[name[strings.LastIndex(name, " ")+1:]] {
			if want = strings.TrimPrefix(want, "Gates: FAIL"); !strings.Contains(text, squeezed(want)) {
				t.Errorf("%s has no %q in\n%s", name, want, text)
			}
		}
		if err := write(fullDisk{}); !errors.Is(err, errFull) {
			t.Errorf("%s on a full disk: %v", name, err)
		}
	}
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
		if strings.HasPrefix(name, "block") {
			continue // the layout of another tool
		}
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

// Without gates, no form mentions any.
func TestNoGates(t *testing.T) {
	d := reported(t).Document()
	if text := written(t, d.WriteText) + written(t, d.WriteCSV) + written(t, d.WriteHTML); strings.Contains(strings.ToLower(text), "gates") {
		t.Errorf("gates in\n%s", text)
	}
}

// Of several runs, only those with gates have an outcome; the notes of all are there.
func TestGatesOfSomeRuns(t *testing.T) {
	without, with := gated(t), gated(t)
	without.View.Gates, with.Info.Notes = nil, []string{"something to know"}
	d := report.Runs{without, with}.Document()
	for form, want := range map[string]string{
		written(t, d.WriteMarkdown): "| Gates | - | FAIL |",
		written(t, d.WriteCSV):      "something to know",
		written(t, d.WriteText):     "something to know",
	} {
		if !strings.Contains(form, want) {
			t.Errorf("no %q in\n%s", want, form)
		}
	}
}

// A run whose end is missing passes no gate unless it is forced.
func TestIncompleteRunsPassNoGate(t *testing.T) {
	for name, change := range map[string]func(*runfile.Run){
		"killed":  func(r *runfile.Run) { r.Ended = time.Time{} },
		"stopped": func(r *runfile.Run) { r.Stopped = true },
		"failed":  func(r *runfile.Run) { r.Failure = "disk full" },
	} {
		r := gated(t)
		r.Info, r.View = changed(r.Info, change), viewOf(t, "failed<1%,failed<1%")
		r.View.Gates[1].Force = true
		if all := r.Judgements(); all[0].Passed || !strings.Contains(all[0].String(), "the run is incomplete") || !all[1].Passed {
			t.Errorf("%s: %v", name, all)
		}
	}
}

func analyzed(t *testing.T, rows []trace.Request) *analyze.Analysis {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
