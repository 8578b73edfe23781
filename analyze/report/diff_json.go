package report

import (
	"io"

	"moontide/analyze/diff"
	"moontide/trace"
)

type diffJSON struct {
	A           sideJSON         `json:"a"`
	B           sideJSON         `json:"b"`
	Level       number           `json:"confidence"`
	Objections  []string         `json:"objections"`
	Changes     []changeJSON     `json:"changes"`
	Differences []differenceJSON `json:"differences"`
	Conditions  []conditionJSON  `json:"conditions,omitempty"`
	// ByRuns says that the intervals are based on the run means alone.
	ByRuns   bool           `json:"intervals_by_runs"`
	Paired   bool           `json:"paired"`
	Pairs    int            `json:"pairs"`
	OnlyA    int            `json:"completed_in_a_alone"`
	OnlyB    int            `json:"completed_in_b_alone"`
	Requests []requestsJSON `json:"requests"`
	Origins  []originJSON   `json:"origins"`
}

type sideJSON struct {
	Name string        `json:"name"`
	Runs []runSideJSON `json:"runs"`
}

type runSideJSON struct {
	Name      string `json:"name"`
	Verdict   string `json:"verdict"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	// GapsKept is below 1 if intervals of ITL are based on a part of the gaps.
	GapsKept number `json:"itl_gaps_kept"`
}

type changeJSON struct {
	Setting string   `json:"setting"`
	A       []string `json:"a"`
	B       []string `json:"b"`
}

type differenceJSON struct {
	Metric           string     `json:"metric"`
	A                *number    `json:"a"`
	B                *number    `json:"b"`
	RunsA            []*number  `json:"a_runs"`
	RunsB            []*number  `json:"b_runs"`
	Difference       *number    `json:"difference"`
	Interval         *[2]number `json:"interval"`
	Relative         *number    `json:"relative"`
	RelativeInterval *[2]number `json:"relative_interval"`
	Significant      *bool      `json:"significant"`
	Rising           bool       `json:"rising"`
	Verdict          string     `json:"verdict"` // better, worse or nothing
}

type conditionJSON struct {
	Condition string `json:"condition"`
	Failed    bool   `json:"failed"`
	Reason    string `json:"reason"`
}

type requestsJSON struct {
	Latency        string     `json:"latency"`
	Pairs          int        `json:"pairs"`
	Mean           number     `json:"mean"`
	MeanInterval   *[2]number `json:"mean_interval"`
	Median         number     `json:"median"`
	MedianInterval *[2]number `json:"median_interval"`
	Lower          int        `json:"lower_in_b"`
	Higher         int        `json:"higher_in_b"`
}

type originJSON struct {
	By    string     `json:"by"`
	Bands []bandJSON `json:"bands"`
}

type bandJSON struct {
	Band      string     `json:"band"`
	Pairs     int        `json:"pairs"`
	Latencies []partJSON `json:"latencies"`
}

type partJSON struct {
	Latency  string     `json:"latency"`
	Pairs    int        `json:"pairs"`
	Mean     number     `json:"mean"`
	Interval *[2]number `json:"interval"`
	Adds     number     `json:"adds"`
}

// JSON writes the comparison as one indented JSON object. What is not known is
// null.
func (c Diff) JSON(w io.Writer) error {
	out := diffJSON{
		A: sideJSON{c.NameA, runsJSONOf(c.A)}, B: sideJSON{c.NameB, runsJSONOf(c.B)}, Level: diff.Level,
		Objections: []string{}, Changes: []changeJSON{}, Requests: []requestsJSON{}, Origins: []originJSON{},
		ByRuns: c.ByRuns(), Paired: c.Paired, Pairs: c.Pairs, OnlyA: c.OnlyA, OnlyB: c.OnlyB,
	}
	for _, o := range c.Objections {
		out.Objections = append(out.Objections, o.Reason)
	}
	for _, x := range c.Changes {
		out.Changes = append(out.Changes, changeJSON{x.Setting, orEmpty(x.A), orEmpty(x.B)})
	}
	for _, x := range c.Differences {
		out.Differences = append(out.Differences, differenceJSONOf(x))
	}
	for _, j := range c.Judgements {
		out.Conditions = append(out.Conditions, conditionJSON{j.Gate.Text, j.Failed, j.Reason})
	}
	for _, r := range c.Requests {
		out.Requests = append(out.Requests, requestsJSON{
			r.Latency.Key(), r.Count, number(r.Mean), intervalJSON(r.MeanInterval), number(r.Median), intervalJSON(r.MedianInterval), r.Lower, r.Higher,
		})
	}
	for _, o := range c.Origins {
		origin := originJSON{By: o.By}
		for _, b := range o.Bands {
			band := bandJSON{Band: b.Name, Pairs: b.Pairs}
			for _, p := range b.Latencies {
				band.Latencies = append(band.Latencies, partJSON{p.Latency.Key(), p.Count, number(p.Mean), intervalJSON(p.Interval), number(p.Adds)})
			}
			origin.Bands = append(origin.Bands, band)
		}
		out.Origins = append(out.Origins, origin)
	}
	return writeJSON(w, out)
}

func runsJSONOf(runs []*diff.Run) (all []runSideJSON) {
	for _, r := range runs {
		all = append(all, runSideJSON{r.Name, r.Verdict.Level.String(), r.Completed, r.Failed, number(r.GapsKept)})
	}
	return all
}

func differenceJSONOf(x diff.Difference) differenceJSON {
	_, verdict := changeText(x)
	out := differenceJSON{
		Metric: x.Metric.Key, A: numberOf(x.A), B: numberOf(x.B), RunsA: numbersOf(x.RunsA), RunsB: numbersOf(x.RunsB),
		Difference: numberOf(x.Difference), Interval: intervalJSON(x.Interval),
		Relative: numberOf(x.Relative), RelativeInterval: intervalJSON(x.RelativeInterval), Rising: x.Rising, Verdict: verdict,
	}
	if x.Interval.Set {
		out.Significant = new(x.Significant())
	}
	return out
}

func numbersOf(values []trace.Opt[float64]) (all []*number) {
	for _, v := range values {
		all = append(all, numberOf(v))
	}
	return all
}

func intervalJSON(i trace.Opt[diff.Interval]) *[2]number {
	if !i.Set {
		return nil
	}
	return &[2]number{number(i.Value.Low), number(i.Value.High)}
}

// orEmpty is a list that is never null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
