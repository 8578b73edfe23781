package sessions_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/trace"
)

// workload draws a source by other means than the method: users arrive by a Poisson
// process, start with one of several system prompts, and continue after a pause.
type workload struct {
	requests int
	rate     float64 // sessions per second
	gridMs   float64 // of the clock
	systems  int     // system prompts
	proceed  float64 // probability of a next turn
	pause    float64 // mean, seconds
	named    bool    // rows have session ids
	delays   bool    // later turns have a delay instead of a timestamp
	noBlocks bool
	calls    bool // turns start sub-agents, which the next turn waits for
	keys     bool // rows have clients, and tokens of reasoning
}

const blockSize = 64

// workloads are sources of all kinds.
var workloads = map[string]workload{
	"chat":      {requests: 2000, rate: 1, systems: 3, proceed: .6, pause: 20},
	"coarse":    {requests: 2000, rate: 3, systems: 3, proceed: .4, pause: 20, gridMs: 3000},
	"sparse":    {requests: 500, rate: .05, proceed: .4, pause: 20, gridMs: 3000},
	"no blocks": {requests: 1000, rate: 1, proceed: .5, pause: 20, noBlocks: true},
	"named":     {requests: 1000, rate: 1, systems: 2, proceed: .8, pause: 20, named: true, keys: true},
	"delays":    {requests: 1000, rate: 1, systems: 2, proceed: .8, pause: 20, named: true, delays: true},
	"agents":    {requests: 1000, rate: .2, systems: 2, proceed: .8, pause: 5, named: true, delays: true, calls: true},
	"unnamed":   {requests: 500, rate: .2, systems: 2, proceed: .8, pause: 5, delays: true, calls: true},
	"few":       {requests: 30, rate: .1, proceed: .8, pause: 20},
}

type drawnRow struct {
	trace.Request
	at float64
}

// drawer draws the rows of a workload.
type drawer struct {
	workload
	random *rand.Rand
	rows   []drawnRow
	id     uint64
}

func (w workload) rows() []trace.Request {
	d := &drawer{workload: w, random: rand.New(rand.NewPCG(1, 7))}
	systems := [][]uint64{nil}
	for i := range w.systems {
		systems = append(systems, d.fresh(4+8*i))
	}
	now := 0.0
	for session := 0; len(d.rows) < 3*w.requests/2; session++ {
		now += d.random.ExpFloat64() / w.rate * 1000
		d.agent(fmt.Sprint("u", session), systems[d.random.IntN(len(systems))], now, nil, trace.Opt[float64]{}, 0)
	}
	slices.SortStableFunc(d.rows, func(a, b drawnRow) int { return cmp.Compare(a.at, b.at) })
	var rows []trace.Request
	for _, r := range d.rows[:w.requests] {
		rows = append(rows, r.Request)
	}
	return rows
}

func (d *drawer) fresh(n int) (ids []uint64) {
	for range n {
		d.id++
		ids = append(ids, d.id*977)
	}
	return ids
}

// agent draws an agent whose first turn waits for some others, and returns its last turn
// and when that has ended.
func (d *drawer) agent(name string, ids []uint64, at float64, after []string, delay trace.Opt[float64], level int) (last string, end float64) {
	isl := len(ids) * blockSize
	for turn := 0; ; turn++ {
		isl += 1 + int(300*math.Exp(d.random.NormFloat64()))
		osl := 1 + int(150*d.random.ExpFloat64())
		ids = append(slices.Clone(ids), d.fresh(isl/blockSize-len(ids))...)
		r := trace.Request{Timestamp: trace.Some(math.Round(at)), InputLength: isl, OutputLength: osl, HashIDs: slices.Clone(ids), SessionID: name}
		if isl%blockSize > 0 {
			r.HashIDs = append(r.HashIDs, d.fresh(1)...)
		}
		if d.gridMs > 0 {
			r.Timestamp.Value = math.Round(at/d.gridMs) * d.gridMs
		}
		if d.noBlocks {
			r.HashIDs = nil
		}
		if !d.named {
			r.SessionID = ""
		}
		if d.keys {
			r.Extra = fmt.Appendf(nil, `{"other": 7, "user": "%s", "recorded": {"type": %d}, "reasoning_tokens": %d}`,
				[]string{"ann", "bob"}[len(name)%2], turn%2, osl/2)
		}
		if d.calls {
			r.ID = fmt.Sprint(name, ":", turn)
			if r.After = after; after != nil || !d.named {
				r.After = append([]string{}, after...)
			}
			if d.named && turn > 0 && len(after) == 1 {
				r.After = nil
			}
		}
		if d.delays && (turn > 0 || level > 0) {
			r.Timestamp, r.Delay, r.DelayKind = trace.Opt[float64]{}, delay, trace.Think
		}
		d.rows = append(d.rows, drawnRow{r, at})
		end = at + trace.ResponseTime(osl)
		last, after = r.ID, []string{r.ID}
		if d.random.Float64() >= d.proceed || level > 0 && turn > 2 {
			return last, end
		}
		delay = trace.Some(math.Round(d.pause * 1000 * d.random.ExpFloat64()))
		if d.calls && level == 0 && turn%3 == 0 {
			for i := range 2 {
				wait := trace.Some(math.Round(100 * d.random.ExpFloat64()))
				ended, answered := d.agent(fmt.Sprint(name, "/", turn, i), ids[:min(len(ids), 4)], end+wait.Value, []string{r.ID}, wait, level+1)
				after, at = append(after, ended), max(at, answered)
			}
			end = max(end, at)
		}
		at = end + delay.Value
		isl += osl
	}
}
