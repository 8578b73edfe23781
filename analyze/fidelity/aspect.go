package fidelity

import (
	"math"

	"moontide/trace/stats"
)

// Aspect is a property of a trace that is compared.
type Aspect struct {
	// Key names the aspect in files and limits.
	Key string
	// Name is its name in reports, Definition what its values are, in Unit.
	Name, Definition, Unit string
	// Bound is the largest gap that always passes.
	Bound float64
	// Relative is set if the gap is relative to the source's value; KS if it is the
	// distance between two distributions (see [stats.KS]), whose values are medians.
	// Otherwise it is the difference of two shares.
	Relative, KS bool

	column int                   // of the values of KS, or another that it needs
	value  func(*piece) float64  // of other aspects
	whole  bool                  // of all requests rather than by piece
	needs  func(t *Trace) string // what a trace lacks, "" for nothing
	clock  bool                  // depends on times between all arrivals
	few    int                   // values in both traces that are too few to compare
	share  float64               // size of an LRU cache, as a share of the source's unique blocks; 0 for none
}

// Aspects returns all aspects in the order of reports.
func Aspects() []Aspect {
	all := []Aspect{
		meanOf("isl_mean", "ISL mean", isl), meanOf("osl_mean", "OSL mean", osl),
		distributionOf("isl_ks", "KS of ISL", "tokens", isl, 0.03, nil),
		distributionOf("osl_ks", "KS of OSL", "tokens", osl, 0.03, nil),
		distributionOf("context_ks", "KS of shared context", "tokens", context, 0.03, noBlocks),
		interArrival(),
		turnGaps(),
		variationOf("isl_windowed_cv", "windowed CV of ISL", isl), variationOf("osl_windowed_cv", "windowed CV of OSL", osl),
		peakOf("peak_minute_input", "peak-minute input", isl), peakOf("peak_minute_output", "peak-minute output", osl),
	}
	names := [...]string{"1", "3", "10", "30", "100"}
	for i, share := range cacheShares {
		rate := hitRateOf("lru_"+names[i], "LRU hit rate at "+names[i]+" %",
			"block hit rate of an LRU cache of "+names[i]+" % of the source's unique blocks", lru+i)
		rate.share = share
		all = append(all, rate)
	}
	workers := hitRateOf("fleet_hit_rate", "hit rate of 8 workers",
		"block hit rate behind 8 workers with prefix routing, whose caches together hold 10 % of the source's unique blocks", fleet)
	workers.share = fleetShare
	return append(all, workers,
		latencyOf("ttft_p50", "TTFT p50", 0.5), latencyOf("ttft_p99", "TTFT p99", 0.99),
	)
}

func meanOf(key, name string, column int) Aspect {
	return Aspect{Key: key, Name: name, Definition: "mean over all requests", Unit: "tokens", Bound: 0.02, Relative: true, whole: true, column: column,
		value: func(p *piece) float64 { return mean(p.column[column]) }}
}

func distributionOf(key, name, unit string, column int, bound float64, needs func(*Trace) string) Aspect {
	return Aspect{Key: key, Name: name, Definition: distributions[column] + "; the values are medians", Unit: unit, Bound: bound, KS: true, column: column,
		whole: column == isl || column == osl || column == gap, needs: needs, clock: column == gap}
}

var distributions = map[int]string{
	isl: "input lengths", osl: "output lengths",
	context: "leading tokens of prompts, in whole blocks, that another request has, too",
	gap:     "times from one arrival to the next",
	turnGap: "times from the arrival of a request to that of the next one of its session",
}

func interArrival() Aspect {
	return distributionOf("inter_arrival_ks", "KS of inter-arrival", "ms", gap, 0.03, noTimes)
}

// fewTurnGaps are so few that another trace of the same kind may well have none, for they may
// be of one session, and that chance alone exceeds any limit: the distributions of two samples
// of 14 values differ by more than 0.6 once in a hundred times (Kolmogorov and Smirnov).
const fewTurnGaps = 14

func turnGaps() Aspect {
	a := distributionOf("turn_gap_ks", "KS of turn gap", "ms", turnGap, 0.05, noTurns)
	a.few = fewTurnGaps
	return a
}

// windows is the number of windows, of equally many requests, whose means vary.
const windows = 20

func variationOf(key, name string, column int) Aspect {
	return Aspect{Key: key, Name: name, Definition: "coefficient of variation of the means of 20 windows of equally many requests", Bound: 0.15, Relative: true, column: column,
		value: func(p *piece) float64 {
			values := p.column[column]
			if len(values) < 2*windows {
				return math.NaN()
			}
			means := make([]float64, windows)
			for i := range means {
				means[i] = mean(values[i*len(values)/windows : (i+1)*len(values)/windows])
			}
			of := stats.Of(means)
			return of.Std / of.Mean
		}, needs: func(t *Trace) string {
			if t.Requests() < 2*windows {
				return "fewer than 40 requests"
			}
			return ""
		}}
}

func peakOf(key, name string, column int) Aspect {
	const minute = 60_000
	return Aspect{Key: key, Name: name, Definition: "most tokens of the requests that arrive within 60 s", Unit: "tokens", Bound: 0.1, Relative: true, column: column,
		needs: noTimes, clock: true,
		value: func(p *piece) float64 {
			peak, sum, begin := 0.0, 0.0, 0
			for i, at := range p.at {
				sum += p.column[column][i]
				for at-p.at[begin] >= minute {
					sum -= p.column[column][begin]
					begin++
				}
				peak = max(peak, sum)
			}
			return peak
		}}
}

func hitRateOf(key, name, definition string, column int) Aspect {
	return Aspect{Key: key, Name: name, Definition: definition, Bound: 0.03, column: column, needs: noBlocks,
		value: func(p *piece) float64 { return sum(p.column[column]) / sum(p.column[blocks]) }}
}

func latencyOf(key, name string, quantile float64) Aspect {
	return Aspect{Key: key, Name: name, Definition: "time to first token of a simulated deployment", Unit: "ms", Bound: 0.15, Relative: true, column: ttft, needs: notSimulated,
		value: func(p *piece) float64 {
			s := stats.Of(known(p.column[ttft]))
			if s.Count == 0 {
				return math.NaN()
			}
			return s.Quantile(quantile)
		}}
}

func noBlocks(t *Trace) string {
	if len(t.blocks) == 0 {
		return "no block ids"
	}
	return ""
}

func noTimes(t *Trace) string {
	switch {
	case !t.timed && t.estimated == 0:
		return "no timestamps"
	case t.atOnce():
		return "all requests arrive at once"
	}
	return ""
}

// atOnce reports whether all requests arrive at the same time.
func (t *Trace) atOnce() bool { return len(t.at) < 2 || t.at[len(t.at)-1] == t.at[0] }

// longerBatch is why latencies of a batch at one time do not compare with those of a
// longer one.
func longerBatch(*Trace) string { return "requests that arrive at once wait longer if there are more" }

func noTurns(t *Trace) string {
	if reason := noTimes(t); reason != "" {
		return reason
	}
	if t.sessions == 0 {
		return "no sessions"
	}
	seen := map[int32]bool{}
	for _, s := range t.session {
		if s >= 0 && seen[s] {
			return ""
		}
		seen[s] = true
	}
	return "no session has a second turn"
}

func notSimulated(t *Trace) string {
	if t.TTFT == nil {
		return "not simulated"
	}
	return ""
}

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// known returns a copy of the values that are not NaN.
func known(values []float64) []float64 {
	all := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all
}

// gap returns the gap between two pieces, or lists of pieces, NaN if either has no
// values.
func (a *Aspect) gap(source, drawn []*piece) float64 {
	if a.KS {
		return stats.KS(a.sample(source), a.sample(drawn))
	}
	x, y := a.mean(source), a.mean(drawn)
	switch {
	case x == y:
		return 0
	case a.Relative && x == 0:
		return 1
	case a.Relative:
		return math.Abs(y-x) / math.Abs(x)
	}
	return math.Abs(y - x)
}

// mean returns the mean of the values of the pieces.
func (a *Aspect) mean(pieces []*piece) float64 {
	total := 0.0
	for _, p := range pieces {
		if p.column[a.column] == nil {
			return math.NaN()
		}
		total += a.value(p)
	}
	return total / float64(len(pieces))
}

// sample returns the values of the column in all pieces.
func (a *Aspect) sample(pieces []*piece) stats.Sample {
	var all []float64
	for _, p := range pieces {
		all = append(all, known(p.column[a.column])...)
	}
	return stats.Of(all)
}

// shown returns the value in a report.
func (a *Aspect) shown(pieces []*piece) float64 {
	if !a.KS {
		return a.mean(pieces)
	}
	s := a.sample(pieces)
	if s.Count == 0 {
		return math.NaN()
	}
	return s.Quantile(0.5)
}
