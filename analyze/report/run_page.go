package report

import (
	"fmt"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// headlines returns the result in a few numbers: goodput if there are objectives,
// latencies at p99, and throughput.
func (r Run) headlines() (all []doc.KeyValue) {
	result := r.Result
	if g := result.Goodput; g != nil {
		all = append(all, doc.KeyValue{Key: "Goodput", Value: doc.FixedOr(g.Rate, 2), Unit: "req/s", Note: doc.PercentOr(g.Share(g.Good)) + " % met all objectives"})
	}
	for _, l := range (Runs{r}).withTTFVT(measure.VLLMLatencies) {
		d := result.Latency(l)
		if d.Count == 0 {
			continue
		}
		note := "median " + doc.Duration(d.Quantile(0.5))
		if from := result.Latency(fromSchedule[l]); differs(d, from) {
			note += ", p99 from schedule " + doc.Duration(from.Quantile(0.99))
		}
		value, unit, _ := strings.Cut(doc.Duration(d.Quantile(0.99)), " ")
		all = append(all, doc.KeyValue{Key: "P99 " + l.Label(), Value: value, Unit: unit, Note: note})
	}
	failed := "none failed"
	if result.Failed > 0 {
		failed = doc.Int(result.Failed) + " failed"
	}
	if n := result.Abandoned.Requests; n > 0 {
		failed += ", " + doc.Int(n) + " abandoned"
	}
	return append(all,
		doc.KeyValue{Key: "Request throughput", Value: doc.FixedOr(result.RequestRate, 2), Unit: "req/s", Note: fmt.Sprintf("at most %s in flight", doc.Int(result.PeakConcurrency))},
		doc.KeyValue{Key: "Output throughput", Value: doc.FixedOr(result.OutputRate, 0), Unit: "tok/s", Note: fmt.Sprintf("%s in the best second", doc.Fixed(result.PeakOutputRate, 0))},
		doc.KeyValue{Key: "Completed", Value: doc.Int(result.Completed), Unit: doc.Plural(result.Completed, "request"), Note: failed})
}

// fromSchedule names the latencies that include the client's wait.
var fromSchedule = map[measure.Latency]measure.Latency{measure.TTFT: measure.TTFTFromSchedule, measure.E2EL: measure.E2ELFromSchedule}

// differs reports whether a latency from the schedule differs by 1 % at the median or p99.
func differs(d, from stats.Sample) bool {
	for _, p := range []float64{0.5, 0.99} {
		if from.Count > 0 && from.Quantile(p) > 1.01*d.Quantile(p) {
			return true
		}
	}
	return false
}

// informative omits latencies from the schedule that equal those from sending, and
// latencies that are always 0, as in virtual time.
func (r Run) informative(all []measure.Latency) []measure.Latency {
	return slices.DeleteFunc(slices.Clone(all), func(l measure.Latency) bool {
		for sent, due := range fromSchedule {
			if l == due {
				return !differs(r.Result.Latency(sent), r.Result.Latency(due))
			}
		}
		d := r.Result.Latency(l)
		return d.Count > 0 && d.Min == 0 && d.Max == 0
	})
}

// mostDrawn is the maximum number of runs of a page with all figures of each. A page of more
// runs has their common distributions.
const mostDrawn = 3

func (r Run) addNotes(d *doc.Document) {
	d.Notes = append(d.Notes, r.notes()...)
	d.Verdict, d.Gates = verdictOf(r.Result.Verdict), gates(r.Judgements())
}

func verdictOf(v measure.Verdict) *doc.Verdict {
	d := &doc.Verdict{Level: v.Level.String(), Evidence: []doc.Evidence{}}
	for _, e := range v.Evidence {
		d.Evidence = append(d.Evidence, doc.Evidence{Check: e.Check, Level: e.Level.String(), Text: e.Text})
	}
	return d
}

// notes returns the notes, which are the same in all formats.
func (r Run) notes() (all []doc.Note) {
	add := func(kind, format string, args ...any) {
		all = append(all, doc.Note{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	info, result := r.Info, r.Result
	if pacing := result.Pacing(); pacing != "" {
		add("Pacing", "%s. Compare latencies from schedule, which include the wait.", pacing)
	}
	if result.GapsNotKept > 0 {
		add("Note", "ITL comes from a histogram with a resolution of %.1f %% (%s of %s gaps), because the run has no chunk times; tokens between the first and the last are assumed to be evenly spaced, and ITL per token is known only if every chunk has one token.",
			100*runfile.GapResolution, doc.Int(result.GapsCounted), doc.Int(result.GapsNotKept))
	}
	for _, of := range []struct {
		n    int
		text string
	}{
		{result.InputEstimates, "input tokens of %s are those of the trace, because the server did not report them."},
		{result.OutputEstimates - result.Contradicted, "generated tokens of %s are the number of chunks, because the server did not report them."},
		{result.Contradicted, "generated tokens of %s are the number of chunks, because the stream contradicts the server's count."},
	} {
		if of.n > 0 {
			add("Estimated", of.text, doc.Count(of.n, "request"))
		}
	}
	if n := result.ReasoningOnly; n > 0 {
		text := "%s have no visible text, because they ended during reasoning; TTFVT excludes them."
		if n == 1 {
			text = "%s has no visible text, because it ended during reasoning; TTFVT excludes it."
		}
		add("Note", text, doc.Count(n, "response"))
	}
	if n := result.MissingDone; n > 0 {
		add("Note", "%s ended without [DONE]; they count as complete because they had a finish reason, but may have occupied a slot for 1 s longer.", doc.Count(n, "response"))
	}
	switch w := result.Window; {
	case w.SentUntil > 0:
		add("Window", "the first and the last requests are not measured, because concurrency ramps up and down there.")
	case w != (measure.Span{}):
		add("Window", "%.2f s to %.2f s. Completed requests, input tokens and latencies cover the %s entirely inside it (in a short window, mostly short ones);"+
			" generated tokens include all that arrived inside it; request throughput counts the %d requests that ended inside it.",
			w.From.Seconds(), w.To.Seconds(), doc.Count(result.Completed, "request"), result.Ended)
	}
	all = append(all, simulatedNotes(&info)...)
	if text := endNote(info); text != "" {
		add("", "%s", text)
	}
	if info.Failure != "" {
		add("", "The run failed: %s", info.Failure)
	}
	for _, note := range info.Notes {
		add("Note", "%s.", note)
	}
	if c := info.Calibrated; c != nil && !info.Settings.Virtual {
		if text := beyondCalibrated(c, result.PeakConcurrency, result.PeakEventRate, result.PeakSendRate); text != "" {
			add("Calibrated", "%s.", text)
		}
	}
	return all
}

func noteTexts(notes []doc.Note) []string {
	texts := []string{}
	for _, n := range notes {
		texts = append(texts, n.String())
	}
	return texts
}

// notesOf returns the notes of several runs. A note that some runs lack begins with the
// names of the runs that have it.
func notesOf(runs Runs) (all []doc.Note) {
	const most = 3
	of, names := map[doc.Note][]string{}, map[string]bool{} // runs of a search at the same load have one name
	for _, r := range runs {
		names[r.Name] = true
		for _, n := range r.notes() {
			if of[n] == nil {
				all = append(all, n)
			}
			if !slices.Contains(of[n], r.Name) {
				of[n] = append(of[n], r.Name)
			}
		}
	}
	for i, n := range all {
		who := of[n]
		if len(who) == len(names) {
			continue
		}
		if more := len(who) - most; more > 0 {
			who = append(who[:most:most], fmt.Sprintf("and %d more", more))
		}
		all[i].Text = strings.Join(who, ", ") + ": " + n.Text
	}
	return all
}

// simulatedNotes returns a note if the target is not a real server.
func simulatedNotes(info *runfile.Run) []doc.Note {
	text := "these numbers come from the embedded simulated endpoint, not from a model."
	switch {
	case info.Settings.Virtual:
		text = "these numbers come from simulated engines in virtual time, not from a server."
	case !info.Target.Simulated:
		return nil
	}
	return []doc.Note{{Kind: "Simulated", Text: text}}
}

func endNote(info runfile.Run) string {
	switch {
	case info.Ended.IsZero() && info.Sent == 0:
		return "The run did not end: it was killed or is still running. The number of rows not sent is unknown."
	case info.Ended.IsZero():
		return fmt.Sprintf("The run did not end: it was killed or is still running. %d of %d rows were sent; those without a record were in flight.", info.Sent, info.Rows)
	case info.Stopped:
		return fmt.Sprintf("The run was stopped early: %d of %d rows were not sent.", info.NotSent, info.Rows)
	case info.TimeUp:
		return fmt.Sprintf("Sending ended after the configured %g s: %d of %d rows were not sent.", info.Settings.Duration.Seconds(), info.NotSent, info.Rows)
	case info.Cut > 0:
		text := fmt.Sprintf("%s not sent because their session ended: it reached a limit or the model's context length, or a request was abandoned.", doc.Count(info.Cut, "later turn"))
		if failed := info.NotSent - info.Cut; failed > 0 {
			text += fmt.Sprintf(" %s not sent because an earlier turn of the session failed.", doc.Count(failed, "later turn"))
		}
		return text
	case info.NotSent > 0:
		return fmt.Sprintf("%s not sent because an earlier turn of the session failed.", doc.Count(info.NotSent, "later turn"))
	}
	return ""
}
