package run

import (
	"fmt"
	"math/bits"
	"slices"

	"moontide/replay"
	"moontide/trace/stats"
)

// Group is the requests of a run, divided by something that they differ in.
type Group struct {
	By    string // what it is, in a few words
	Kinds []Kind
}

// Kind is the requests of a group that are alike.
type Kind struct {
	Name string
	// Completed requests are those that latencies are of: in a window, the
	// requests wholly inside it. Failed ones ended inside it.
	Completed, Failed int
	TTFT, TPOT, E2EL  stats.Sample
}

// groupsOf divides requests in all ways that leave more than one kind.
func groupsOf(requests []Request, r *Result) []Group {
	hits := predictedShares(r.Cache.Prediction.Each)
	var all []Group
	for _, g := range []struct {
		by string
		of func(q *Request) (order int, name string, some bool)
	}{
		{"turn of the session", turnKind},
		{"ISL", islKind},
		{"predicted share of the prompt that is cached", func(q *Request) (int, string, bool) {
			share, known := hits(q.Row)
			return hitKind(share, known)
		}},
	} {
		if kinds := divide(requests, r.Window, g.of); len(kinds) > 1 {
			all = append(all, Group{g.by, kinds})
		}
	}
	return all
}

// predictedShares finds the share of a row's prompt that was predicted to be
// cached.
func predictedShares(each []PredictedRequest) func(row int) (share float64, known bool) {
	sorted := make([]int32, len(each))
	for i := range each {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(a, b int32) int { return each[a].Row - each[b].Row })
	return func(row int) (float64, bool) {
		i, found := slices.BinarySearchFunc(sorted, row, func(at int32, row int) int { return each[at].Row - row })
		if !found || each[sorted[i]].ISL <= 0 {
			return 0, false
		}
		p := &each[sorted[i]]
		return float64(p.Predicted) / float64(p.ISL), true
	}
}

// groupLatencies are those of a [Kind].
var groupLatencies = [3]Latency{TTFT, TPOT, E2EL}

// kindMaker is a kind in the making.
type kindMaker struct {
	order             int
	name              string
	completed, failed int
	latencies         [3][]float64 // of groupLatencies
}

func divide(requests []Request, window Span, of func(q *Request) (order int, name string, some bool)) []Kind {
	makers := map[int]*kindMaker{}
	for i := range requests {
		q := &requests[i]
		failed := q.Class != replay.OK && window.has(q.End)
		order, name, some := of(q)
		if !some || !q.Counted && !failed {
			continue
		}
		m := makers[order]
		if m == nil {
			m = &kindMaker{order: order, name: name}
			makers[order] = m
		}
		m.add(q)
	}
	var sorted []*kindMaker
	for _, m := range makers {
		sorted = append(sorted, m)
	}
	slices.SortFunc(sorted, func(a, b *kindMaker) int { return a.order - b.order })
	var kinds []Kind
	for _, m := range sorted {
		kinds = append(kinds, Kind{m.name, m.completed, m.failed, stats.Of(m.latencies[0]), stats.Of(m.latencies[1]), stats.Of(m.latencies[2])})
	}
	return kinds
}

func (m *kindMaker) add(q *Request) {
	if !q.Counted {
		m.failed++
		return
	}
	m.completed++
	for i, l := range groupLatencies {
		if value := q.Latency(l); value.Set {
			m.latencies[i] = append(m.latencies[i], value.Value)
		}
	}
}

// turnKind joins late turns, of which there are few each.
func turnKind(q *Request) (order int, name string, some bool) {
	switch t := q.Turn; {
	case t <= 4:
		return int(t), fmt.Sprint(t), true
	case t <= 8:
		return 5, "5 to 8", true
	case t <= 16:
		return 6, "9 to 16", true
	}
	return 7, "17 on", true
}

// islKind doubles from kind to kind.
func islKind(q *Request) (order int, name string, some bool) {
	const first = 512
	k := bits.Len(uint(q.ISL / first))
	if k == 0 {
		return 0, fmt.Sprintf("below %d", first), true
	}
	low := first << (k - 1)
	return k, fmt.Sprintf("%d to %d", low, 2*low-1), true
}

func hitKind(share float64, known bool) (order int, name string, some bool) {
	switch {
	case !known:
		return 0, "", false
	case share == 0:
		return 1, "none", true
	case share < 0.25:
		return 2, "below 25 %", true
	case share < 0.5:
		return 3, "25 to 50 %", true
	case share < 0.75:
		return 4, "50 to 75 %", true
	case share < 0.9:
		return 5, "75 to 90 %", true
	}
	return 6, "90 % and more", true
}
