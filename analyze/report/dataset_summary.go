package report

import (
	"fmt"

	"moontide/analyze"
	"moontide/analyze/report/doc"
)

func summarySentences(a *analyze.Analysis) []string {
	text := arrivalSentences(a)
	text = append(text, fmt.Sprintf("Prompts have %s tokens on average (median %s), answers %s.",
		doc.Fixed(a.ISL.Mean, 0), doc.Fixed(a.ISL.Quantile(0.5), 0), doc.Fixed(a.OSL.Mean, 0)))
	if a.OSL.Sum > 0 {
		text = append(text, fmt.Sprintf("That is %s input tokens for each output token.", doc.Fixed(a.ISL.Sum/a.OSL.Sum, 1)))
	}
	if a.Time != nil {
		if change := changeSentence(a.Time); change != "" {
			text = append(text, change)
		}
	}
	return append(text, reuseSentences(a)...)
}

func arrivalSentences(a *analyze.Analysis) []string {
	all, at := "The trace has "+doc.Count(a.Requests, "request"), a.Arrivals
	if at == nil {
		return []string{all + " without arrival times."}
	}
	timed := at.Requests - at.Estimated
	if timed < a.Requests {
		all += fmt.Sprintf(", %s of them with an arrival time", doc.Int(timed))
	}
	if at.Estimated > 0 {
		all += " and the others with an estimate"
	}
	switch {
	case !at.Rate.Set && at.Requests == 1:
		return []string{all + "."}
	case !at.Rate.Set:
		return []string{all + ", all at the same time."}
	case timed < a.Requests:
		all += ","
	}
	text := []string{fmt.Sprintf("%s over %s, %s on average.", all, span(at.Duration()), rateText(at.Rate.Value))}
	// A coarse clock: on average at least two requests share a timestamp.
	if timed >= 2*at.DistinctTimestamps {
		text = append(text, fmt.Sprintf("They share %s arrival times, with up to %s requests at one time, so a replay at the recorded timing is bursty.",
			doc.Int(at.DistinctTimestamps), doc.Int(at.MostAtOnce)))
	}
	return text
}

func gridSentence(at *analyze.Arrivals) string {
	switch g := at.Grid; {
	case at.Requests-at.Estimated > g.Ticks+at.Requests/10: // a tenth or more share a timestamp
		return "Arrival times lie on a grid, most likely because the recording used a coarse clock." +
			" A replay at the original timing sends all requests of a step at once, in bursts that did not occur in production."
	case g.Ticks == g.Steps+1:
		return "Requests arrive at a constant rate."
	}
	return "Arrival times come from a coarse clock, but few requests share a step, so a replay adds no bursts."
}

func reuseSentences(a *analyze.Analysis) []string {
	var text []string
	tokens := "prompt tokens"
	if p := a.Prefix; p != nil && p.Requests < a.Requests {
		tokens = "tokens of prompts with block ids"
	}
	switch p := a.Prefix; {
	case p == nil:
		text = append(text, "Without block ids, shared prefixes are unknown.")
	case p.HitBlocks == 0:
		text = append(text, "No two prompts share a prefix: a prefix cache would never hit.")
	case p.Infinite.Token.Set:
		text = append(text, fmt.Sprintf("A cache that never evicts would serve %s %% of all %s:"+
			" a prefix cache can save at most this share of prefill.", doc.Percent(p.Infinite.Token.Value), tokens))
	}
	if o := a.Observed.SharedRatio; o.Set && o.Value > 0 {
		text = append(text, fmt.Sprintf("%s %% of the %s are in prefixes shared by several requests;"+
			" the first request with such a prefix still misses.", doc.Percent(o.Value), tokens))
	}
	if d := a.Declared.SharedRatio; d.Set {
		text = append(text, fmt.Sprintf("The generator of the trace declares %s %% of the prompt tokens as shared context.", doc.Percent(d.Value)))
	}
	return text
}

// rateText shows a rate per second, or per hour if it is too low to read per second.
func rateText(perSecond float64) string {
	if perSecond < .1 {
		return doc.Fixed(3600*perSecond, 1) + " per hour"
	}
	return doc.Fixed(perSecond, 2) + " per second"
}
