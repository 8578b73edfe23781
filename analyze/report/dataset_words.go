package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/analyze"
	"moontide/trace"
)

// datasetSummary says in sentences what the numbers mean for a server.
func datasetSummary(a *analyze.Analysis) []string {
	text := arrivalWords(a)
	text = append(text, fmt.Sprintf("A prompt has %s tokens on average (median %s) and is answered with %s.",
		decimals(a.ISL.Mean, 0), decimals(a.ISL.Quantile(0.5), 0), decimals(a.OSL.Mean, 0)))
	if a.OSL.Sum > 0 {
		text = append(text, fmt.Sprintf("That is %s input tokens for each output token.",
			decimals(a.ISL.Sum/a.OSL.Sum, 1)))
	}
	return append(text, reuseWords(a)...)
}

func arrivalWords(a *analyze.Analysis) []string {
	all, at := "The trace holds "+counted(a.Requests, "request"), a.Arrivals
	if at == nil {
		return []string{all + "; it does not say when they arrive."}
	}
	if at.Requests < a.Requests {
		all += fmt.Sprintf(", %s of them with an arrival time,", grouped(at.Requests))
	}
	if !at.Rate.Set {
		return []string{all + " at one single time."}
	}
	text := []string{fmt.Sprintf("%s over %s, %s per second on average.",
		all, span(at.Duration()), decimals(at.Rate.Value, 2))}
	// A coarse clock: on average two requests or more carry the same time.
	if at.Requests >= 2*at.DistinctTimestamps {
		text = append(text, fmt.Sprintf("They share %s arrival times, up to %s requests at one: sent as recorded, they come in bursts.",
			grouped(at.DistinctTimestamps), grouped(at.MostAtOnce)))
	}
	return text
}

// gridWords says what a time grid does to a replay.
func gridWords(at *analyze.Arrivals) string {
	switch g := at.Grid; {
	case at.Requests > g.Ticks+at.Requests/10: // a tenth or more come with others
		return "Arrivals lie on a grid, most likely the clock of the recording and not the traffic." +
			" A replay at the original timing sends what came within a step at once, in bursts that production never saw."
	case g.Ticks == g.Steps+1:
		return "Requests come at a constant rate, like a metronome."
	}
	return "Arrivals are known to within one step of a coarse clock. Few share a step, so a replay has no bursts of its making."
}

func reuseWords(a *analyze.Analysis) []string {
	var text []string
	tokens := "prompt tokens"
	if p := a.Prefix; p != nil && p.Requests < a.Requests {
		tokens = "tokens of prompts with block ids"
	}
	switch p := a.Prefix; {
	case p == nil:
		text = append(text, "Without block ids, nothing can be said about what prompts share.")
	case p.HitBlocks == 0:
		text = append(text, "No prompt begins like an earlier one: a prefix cache would never hit.")
	case p.Infinite.Token.Set:
		text = append(text, fmt.Sprintf("A cache that never evicts would serve %s %% of all %s,"+
			" so a prefix cache can spare a server at most that share of their prefill.",
			percent(p.Infinite.Token.Value), tokens))
	}
	if o := a.Observed.SharedRatio; o.Set && o.Value > 0 {
		text = append(text, fmt.Sprintf("%s %% of the %s lie in prefixes that several requests have;"+
			" whoever brings such a prefix first still misses it.", percent(o.Value), tokens))
	}
	if d := a.Declared.SharedRatio; d.Set {
		text = append(text, fmt.Sprintf("The trace's generator declares %s %% of the prompt tokens to be shared context.",
			percent(d.Value)))
	}
	return text
}

// counted is a number of things, of which one is named.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return grouped(n) + " " + thing
}

// grouped writes a whole number with commas between thousands.
func grouped(n int) string { return group(strconv.Itoa(n)) }

// decimals writes a number with commas between thousands and a fixed number of
// decimals.
func decimals(v float64, places int) string { return group(strconv.FormatFloat(v, 'f', places, 64)) }

func group(number string) string {
	digits, sign := strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if strings.Trim(whole, "0123456789") != "" {
		return number // an infinity
	}
	var b strings.Builder
	if sign {
		b.WriteByte('-')
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// percent writes a ratio in percent, without the sign.
func percent(ratio float64) string { return decimals(100*ratio, 2) }

// share is part of whole in percent.
func share(part, whole int) string { return percent(float64(part)/float64(whole)) + " %" }

func optional(v trace.Opt[float64], places int) string {
	if !v.Set {
		return absent
	}
	return decimals(v.Value, places)
}

// noteOr is a note on a value, or why there is none.
func noteOr(v trace.Opt[float64], note, why string) string {
	if !v.Set {
		return why
	}
	return note
}

func optionalPercent(ratio trace.Opt[float64]) string {
	if !ratio.Set {
		return absent
	}
	return percent(ratio.Value)
}

// span says a duration in milliseconds the way people do.
func span(ms float64) string {
	seconds := int(math.Round(ms / 1000))
	switch {
	case ms < 1000:
		return decimals(ms, 0) + " ms"
	case seconds < 60:
		return decimals(ms/1000, 1) + " s"
	case seconds < 3600:
		return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
	case seconds < 48*3600:
		return fmt.Sprintf("%d h %d min", seconds/3600, seconds%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", seconds/86400, seconds%86400/3600)
	}
}
