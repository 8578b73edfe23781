package analyze_test

import (
	"fmt"
	"testing"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/tracetest"
)

// Published values for the public Mooncake conversation trace.
func TestConversationTrace(t *testing.T) {
	rows := tracetest.Conversation(t, format.Open, format.Options{})
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Published values have their published digits. The others were computed by an
	// independent program straight from the definitions.
	for _, check := range []struct{ name, got, want string }{
		{"requests", fmt.Sprint(a.Requests), "12031"},
		{"first and last timestamp", fmt.Sprintf("%.0f %.0f", a.Arrivals.First, a.Arrivals.Last), "0 3536999"},
		{"duration", fmt.Sprintf("%.0f", a.Arrivals.Duration()), "3536999"},
		{"distinct timestamps", fmt.Sprint(a.Arrivals.DistinctTimestamps), "1180"},
		{"most at one timestamp", fmt.Sprint(a.Arrivals.MostAtOnce), "28"},
		{"rate", fmt.Sprintf("%.3f", a.Arrivals.Rate.Value), "3.401"},
		{"ISL mean", fmt.Sprintf("%.2f", a.ISL.Mean), "12035.06"},
		{"ISL min", fmt.Sprint(a.ISL.Min), "891"},
		{"ISL p50", fmt.Sprint(a.ISL.Quantile(0.5)), "6909"},
		{"ISL p90", fmt.Sprint(a.ISL.Quantile(0.9)), "27367"},
		{"ISL p99", fmt.Sprintf("%.1f", a.ISL.Quantile(0.99)), "85400.4"},
		{"ISL max", fmt.Sprint(a.ISL.Max), "126195"},
		{"OSL mean", fmt.Sprintf("%.2f", a.OSL.Mean), "342.62"},
		{"OSL min", fmt.Sprint(a.OSL.Min), "1"},
		{"OSL p50", fmt.Sprint(a.OSL.Quantile(0.5)), "350"},
		{"OSL p99", fmt.Sprintf("%.1f", a.OSL.Quantile(0.99)), "1118.5"},
		{"OSL max", fmt.Sprint(a.OSL.Max), "2000"},
		{"block size", fmt.Sprint(a.Prefix.BlockSize.Tokens, " ", a.Prefix.BlockSize.How), "512 detected"},
		{"total blocks", fmt.Sprint(a.Prefix.TotalBlocks), "288500"},
		{"unique blocks", fmt.Sprint(a.Prefix.UniqueBlocks), "182790"},
		{"block hit rate", fmt.Sprintf("%.6f", a.Prefix.Infinite.Block), "0.366412"},
		{"token hit rate", fmt.Sprintf("%.6f", a.Prefix.Infinite.Token.Value), "0.373624"},
		{"mean request hit rate", fmt.Sprintf("%.6f", a.Prefix.Infinite.MeanRequest), "0.384258"},
		{"observed context", fmt.Sprintf("%.2f", a.Observed.Mean.Value), "6373.59"},
		{"observed unique prompt", fmt.Sprintf("%.2f", a.Observed.UniqueMean.Value), "5661.48"},
		{"requests with no hit", fmt.Sprint(a.Prefix.NoHit), "1"},
		{"requests with every block hit", fmt.Sprint(a.Prefix.AllHit), "118"},
		{"peaks in 1 s and 60 s", fmt.Sprint(a.Arrivals.Peak1s, a.Arrivals.Peak60s), "28 260"},
		{"grid", fmt.Sprintf("%+v", *a.Arrivals.Grid), "{Step:3000 Offset:0 Jitter:3 Share:1 Steps:1179 Ticks:1180}"},
		{"dispersion in 1 s and 60 s", fmt.Sprintf("%.4f %.4f", a.Arrivals.Dispersion1s.Value, a.Arrivals.Dispersion60s.Value), "7.8976 2.8950"},
		{"correlations", fmt.Sprintf("%.6f %.6f", a.Lengths.Pearson.Value, a.Lengths.Spearman.Value), "0.071878 0.071692"},
		{"windows", fmt.Sprint(len(a.Time.Windows), a.Time.Step), "59 60000"},
		// The notes on this trace say 114 s.
		{"median reuse interval, ms", fmt.Sprint(a.Prefix.Reuse.Time.Count, a.Prefix.Reuse.Time.Quantile(0.5)), "105710 113999"},
		{"shared roots", fmt.Sprintf("%+v", a.Prefix.Roots),
			"{Distinct:1 Shared:1 Requests:12031 Top:[{ID:0 Requests:12031 ChainBlocks:1 ChainTokens:512}]}"},
		{"declared context", fmt.Sprint(a.Declared), fmt.Sprint(analyze.Context{})},
	} {
		if check.got != check.want {
			t.Errorf("%s: %s, want %s", check.name, check.got, check.want)
		}
	}
	if s := a.Sessions; !s.Inferred || s.Requests != 12031 || s.Sessions != 12031-3865 || s.Growth.Count != 3865 {
		t.Errorf("%d requests in %d sessions with %d later turns, inferred %v, want 12031 in 8166 with 3865, true",
			s.Requests, s.Sessions, s.Growth.Count, s.Inferred)
	}
}

// The same numbers of two sample traces, computed by an independent program, so that
// they are guarded where the published trace is missing.
func TestSampleTraces(t *testing.T) {
	for name, want := range map[string]string{
		"agent": "ISL 10328.12 6743.74 10319.5 25596.1, OSL 288.69 138 624.1, arrivals 100 27 1, CV 1.529720, rate 0.834308, peaks 5 72, " +
			"correlations -0.035721 -0.128957, roots 19 5 75",
		"conversation": "ISL 11479.37 9866.11 9369 34163.2, OSL 175.82 148 291.4, arrivals 153 153 1, CV 1.404176, rate 6.138894, peaks 16 153, " +
			"correlations -0.090593 -0.157720, roots 4 4 106",
	} {
		r, err := format.Open("../traces/"+name+".jsonl", format.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var rows []trace.Request
		a, err := analyze.Trace(r.Requests(), analyze.Options{Watch: func(r trace.Request, numbers []uint32) {
			for _, number := range numbers {
				r.HashIDs = append(r.HashIDs, uint64(number))
			}
			rows = append(rows, r)
		}})
		if err != nil {
			t.Fatal(err)
		}
		at, roots := a.Arrivals, a.Prefix.Roots
		got := fmt.Sprintf("ISL %.2f %.2f %g %.1f, OSL %.2f %g %.1f, arrivals %d %d %d, CV %.6f, rate %.6f, peaks %d %d, correlations %.6f %.6f, roots %d %d %d",
			a.ISL.Mean, a.ISL.Std, a.ISL.Quantile(0.5), a.ISL.Quantile(0.99), a.OSL.Mean, a.OSL.Quantile(0.5), a.OSL.Quantile(0.9),
			at.Requests, at.DistinctTimestamps, at.MostAtOnce, at.CV.Value, at.Rate.Value, at.Peak1s, at.Peak60s,
			a.Lengths.Pearson.Value, a.Lengths.Spearman.Value, roots.Distinct, roots.Shared, roots.Top[0].Requests)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		prefix, _ := bruteForce(rows, 512)
		checkPrefix(t, a, prefix)
	}
}
