package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/analyze/diff"
	"moontide/analyze/run"
	"moontide/trace"
)

// RunsComparison shows how two sides of a benchmark differ.
type RunsComparison struct {
	*diff.Comparison
	NameA, NameB string
	Judgements   []diff.Judgement
}

// Text writes the comparison for a terminal. The errors are those of w.
func (c RunsComparison) Text(w io.Writer) error { return write(w, c.document().text()) }

// Markdown writes the comparison with tables as GitHub reads them.
func (c RunsComparison) Markdown(w io.Writer) error { return write(w, c.document().markdown()) }

// The marks of a difference that says less than its number.
const (
	insignificant = "~"
	noInterval    = "?"
	equal         = "="
)

func (c RunsComparison) document() *document {
	d := &document{title: "RUN COMPARISON", subject: "A: " + c.NameA + "; B: " + c.NameB}
	c.runs(d)
	c.changes(d)
	c.differences(d)
	c.gates(d)
	c.requests(d)
	c.origins(d)
	return d
}

// runs says what is compared, and what speaks against it.
func (c RunsComparison) runs(d *document) {
	d.section("Runs")
	t := table{columns: []string{"", "run", "verdict", "completed", "failed"}, words: true}
	for i, side := range [][]*diff.Run{c.A, c.B} {
		for _, r := range side {
			t.add("AB"[i:i+1], oneLine(r.Name), r.Verdict.Level.String(), grouped(r.Completed), grouped(r.Failed))
		}
	}
	d.table(t)
	for _, o := range c.Objections {
		d.paragraph("Not comparable: " + oneLine(o.Reason) + ".")
	}
	for _, r := range slices.Concat(c.A, c.B) {
		for _, e := range r.Verdict.Evidence {
			if e.Level == run.Suspect && r.Verdict.Level == run.Suspect {
				d.paragraph(oneLine(r.Name) + " is SUSPECT: " + oneLine(e.Text) + ".")
			}
		}
		if r.OutputEstimates > 0 {
			d.paragraph(fmt.Sprintf("%s: the generated tokens of %s are token chunks, for the server did not count them.", oneLine(r.Name), counted(r.OutputEstimates, "request")))
		}
	}
}

// changes says what was set differently.
func (c RunsComparison) changes(d *document) {
	d.section("What was changed")
	if len(c.Changes) == 0 {
		d.paragraph("Nothing that the runs know of.")
		return
	}
	const wide = 30
	t := table{columns: []string{"setting", "A", "B"}, words: true}
	for _, change := range c.Changes {
		if a, b := settingText(change.A), settingText(change.B); len(a) <= wide && len(b) <= wide {
			t.add(oneLine(change.Setting), a, b)
		}
	}
	if len(t.rows) > 0 {
		d.table(t)
	}
	for _, change := range c.Changes {
		if a, b := settingText(change.A), settingText(change.B); len(a) > wide || len(b) > wide {
			d.paragraph(oneLine(change.Setting)+" in A: "+a+";", "in B: "+b)
		}
	}
}

func settingText(values []string) string {
	text := oneLine(strings.Join(values, ", "))
	if text == "" {
		return absent
	}
	return text
}

// differences is the table of metrics.
func (c RunsComparison) differences(d *document) {
	d.section("Differences")
	t := table{columns: []string{"metric", "A", "B", "B - A", "95 % interval", "change", ""}}
	unsure, unknown := 0, 0
	var rising []string
	for _, x := range c.Differences {
		if !x.A.Set && !x.B.Set {
			continue
		}
		change, word := changeText(x)
		switch change {
		case insignificant:
			unsure++
		case noInterval:
			unknown++
		}
		if x.Rising && !c.ByRuns() {
			rising = append(rising, x.Metric.Key)
		}
		places, difference := placesOf(x.Metric), absent
		fine := finer(places, x.Difference.Value)
		if x.Difference.Set {
			difference = plus(x.Difference.Value, fine)
		}
		t.add(x.Metric.Key, optional(x.A, places), optional(x.B, places), difference, intervalText(x.Interval, fine), change, word)
	}
	d.table(t)
	if objectives := c.A[0].Objectives; len(objectives) > 0 {
		d.paragraph("request_goodput counts requests that meet " + objectivesText(objectives) + ".")
	}
	if unsure > 0 {
		d.paragraph("~ is a difference that is not significant: its interval has 0 in it. Of 20 metrics that are truly equal, one is outside by chance.")
	}
	if unknown > 0 {
		d.paragraph("? is a difference without an interval: too few stretches of the run know of it, as of a p99 of less than about 1,200 requests or of a rare failure.")
	}
	if len(rising) > 0 {
		d.paragraph(strings.Join(rising, ", ") + " rose through the run on both sides, as where a queue grows: what one request gains or loses, all behind it do. The intervals allow for that.")
	}
	d.paragraph(c.certainty(unsure + unknown))
}

// certainty says what the intervals go by, and what would tell more.
func (c RunsComparison) certainty(open int) string {
	switch {
	case c.ByRuns():
		return "The intervals are those of Student's t over the runs' own values (Welch): they cover what differs from one run of this trace to the next."
	case len(c.A)+len(c.B) > 2:
		return "No interval is narrower than what the runs' own values give by Student's t. With three runs a side or more they go by these values alone."
	case open > 0:
		return "One run a side cannot tell what is at ~ or ?: three or more of the same trace can, as A1,A2,A3 B1,B2,B3. They also show what differs from one run to the next, which the intervals here do not cover."
	}
	return "The intervals cover the chance inside of these runs. What differs from one run to the next shows in three runs a side or more: A1,A2,A3 B1,B2,B3."
}

func objectivesText(objectives []run.Objective) string {
	var texts []string
	for _, o := range objectives {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, ", ")
}

// changeText is the relative change, or why there is none to tell, and whether
// it is for the better.
func changeText(x diff.Difference) (change, word string) {
	switch {
	case !x.Difference.Set:
		return absent, ""
	case x.Difference.Value == 0:
		return equal, ""
	case !x.Interval.Set:
		return noInterval, ""
	case !x.Significant():
		return insignificant, ""
	}
	change = absent
	if x.Relative.Set {
		change = fmt.Sprintf("%+.2f %%", 100*x.Relative.Value)
	}
	switch x.Better() {
	case 1:
		word = "better"
	case -1:
		word = "worse"
	}
	return change, word
}

// placesOf are the decimals of a metric's values: shares are below 1.
func placesOf(m run.Metric) int {
	if m.Unit == run.Share {
		return 4
	}
	return 2
}

// finer are the decimals of a difference: more where there is little.
func finer(places int, difference float64) int {
	if math.Abs(difference) < 0.1 {
		return max(places, 4)
	}
	return places
}

// plus writes a number with its sign, unless it is rounded to nothing.
func plus(v float64, places int) string {
	text := decimals(v, places)
	switch {
	case strings.Trim(text, "-0.") == "":
		return strings.TrimPrefix(text, "-")
	case v > 0:
		return "+" + text
	}
	return text
}

func intervalText(i trace.Opt[diff.Interval], places int) string {
	if !i.Set {
		return absent
	}
	return plus(i.Value.Low, places) + " to " + plus(i.Value.High, places)
}

func (c RunsComparison) gates(d *document) {
	if len(c.Judgements) == 0 {
		return
	}
	d.section("Conditions")
	t := table{columns: []string{"condition", "", "because"}, words: true}
	for _, j := range c.Judgements {
		verdict := "passed"
		if j.Failed {
			verdict = "FAILED"
		}
		t.add(oneLine(j.Gate.Text), verdict, oneLine(j.Reason))
	}
	d.table(t)
}

// requests is the comparison request by request.
func (c RunsComparison) requests(d *document) {
	d.section("Request by request")
	if !c.Paired {
		d.paragraph("The sides did not replay the same requests, so none can be paired.")
		return
	}
	d.row("completed on both sides", grouped(c.Pairs), plural(c.Pairs, "request"), "")
	if c.OnlyA+c.OnlyB > 0 {
		d.row("completed in A alone", grouped(c.OnlyA), plural(c.OnlyA, "request"), "")
		d.row("completed in B alone", grouped(c.OnlyB), plural(c.OnlyB, "request"), "")
	}
	if c.Pairs == 0 {
		return
	}
	t := table{columns: []string{"B - A", "pairs", "mean", "95 % interval", "median", "95 % interval", "lower in B"}}
	for _, r := range c.Requests {
		if r.Count > 0 {
			mean, median := finer(2, r.Mean), finer(2, r.Median)
			t.add(r.Latency.Key(), grouped(r.Count), plus(r.Mean, mean), intervalText(r.MeanInterval, mean), plus(r.Median, median), intervalText(r.MedianInterval, median), share(r.Lower, r.Count))
		}
	}
	d.table(t)
}

func plural(n int, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// origins divides the differences of requests.
func (c RunsComparison) origins(d *document) {
	if len(c.Origins) == 0 {
		return
	}
	d.section("Where the difference comes from")
	d.paragraph("Means of B - A in ms, request by request, and what each band adds to the mean of all.")
	if len(c.A)+len(c.B) > 2 {
		d.paragraph("~ and ? go by the chance inside of the runs here, not by what differs from run to run.")
	}
	for _, o := range c.Origins {
		d.pause()
		t := table{columns: []string{o.By, "pairs", "TTFT", "adds", "TPOT", "adds", "E2EL", "adds"}}
		for _, band := range o.Bands {
			cells := []string{band.Name, grouped(band.Pairs)}
			for _, part := range band.Latencies {
				cells = append(cells, partText(part), addsText(part))
			}
			t.add(cells...)
		}
		d.table(t)
	}
}

func partText(p diff.Part) string {
	switch {
	case p.Count == 0:
		return absent
	case !p.Interval.Set:
		return plus(p.Mean, 2) + " " + noInterval
	case !p.Significant():
		return plus(p.Mean, 2) + " " + insignificant
	}
	return plus(p.Mean, 2) + "  " // in line with what has a mark
}

func addsText(p diff.Part) string {
	if p.Count == 0 {
		return absent
	}
	return plus(p.Adds, 2)
}

// CSV writes the differences, a metric a line. What is not known is empty.
func (c RunsComparison) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"metric", "a", "b", "difference", "low", "high", "relative", "relative_low", "relative_high", "significant", "verdict"})
	cell := func(v float64, set bool) string {
		if !set {
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	for _, x := range c.Differences {
		in, relative := x.Interval, x.RelativeInterval
		out.Write([]string{
			x.Metric.Key, cell(x.A.Value, x.A.Set), cell(x.B.Value, x.B.Set),
			cell(x.Difference.Value, x.Difference.Set), cell(in.Value.Low, in.Set), cell(in.Value.High, in.Set),
			cell(x.Relative.Value, x.Relative.Set), cell(relative.Value.Low, relative.Set), cell(relative.Value.High, relative.Set),
			significance(x), []string{"worse", "", "better"}[x.Better()+1],
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// significance is empty where it is not known.
func significance(x diff.Difference) string {
	if !x.Interval.Set {
		return ""
	}
	return strconv.FormatBool(x.Significant())
}
