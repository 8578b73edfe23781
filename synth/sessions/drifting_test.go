package sessions_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// varying generates conversations whose rate and lengths are functions of time, 0
// to 1 of the duration.
type varying struct {
	seed     uint64
	minutes  float64
	rate     func(x float64) float64 // sessions a second
	maxRate  float64
	isl, osl func(x float64) float64 // multiples of the usual question and answer
	turns    float64                 // mean
	pause    float64                 // seconds, mean
	system   int                     // tokens of a system prompt
	named    bool                    // rows have session ids
	delays   bool
	wholeMs  float64 // of the timestamps
}

func constant(float64) float64 { return 1 }

func (v varying) rows() []trace.Request {
	random := rand.New(rand.NewPCG(v.seed, 11))
	const blockSize = 64
	var id uint64
	fresh := func(ids []uint64, isl int) []uint64 {
		ids = append([]uint64{}, ids...)
		for len(ids) < isl/blockSize {
			id++
			ids = append(ids, id)
		}
		return ids
	}
	system := fresh([]uint64{}, v.system)
	type row struct {
		at  float64
		req trace.Request
	}
	var rows []row
	duration := v.minutes * 60
	session := 0
	for at := 0.0; at < duration; at += random.ExpFloat64() / v.maxRate {
		if random.Float64()*v.maxRate > v.rate(at/duration) {
			continue
		}
		session++
		ids, isl, t := system, v.system, at
		for turn := 0; t < duration; turn++ {
			x := t / duration
			isl += 1 + int(v.isl(x)*300*math.Exp(random.NormFloat64()))
			osl := 1 + int(v.osl(x)*200*math.Exp(.7*random.NormFloat64()))
			ids = fresh(ids, isl)
			step := cmp.Or(v.wholeMs, 1)
			r := trace.Request{Timestamp: trace.Some(math.Round(t*1000/step) * step), InputLength: isl, OutputLength: osl, HashIDs: ids}
			if v.named {
				r.SessionID = fmt.Sprint("session", session)
			}
			pause := v.pause * math.Exp(random.NormFloat64()-.5)
			if v.delays && turn > 0 {
				r.Timestamp, r.Delay = trace.Opt[float64]{}, trace.Some(math.Round(pause*1000))
			}
			rows = append(rows, row{t, r})
			if random.Float64() > 1-1/v.turns {
				break
			}
			isl += osl
			t += trace.AnswerTime(osl)/1000 + pause
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	out := make([]trace.Request, len(rows))
	for i, r := range rows {
		out[i] = r.req
	}
	return out
}

var variations = map[string]varying{
	// The last third of the answers and questions is twice as long as the first.
	"drift": {seed: 1, minutes: 60, rate: constant, maxRate: 1, isl: func(x float64) float64 { return 1 + 2*x }, osl: func(x float64) float64 { return 1.6 - x }, turns: 3, pause: 20, system: 640},
	"doubled last third": {seed: 2, minutes: 60, rate: constant, maxRate: 1.5,
		isl: func(x float64) float64 { return 1 + math.Floor(x*1.5) }, osl: constant, turns: 2.5, pause: 15, system: 0, named: true},
	"regimes": {seed: 3, minutes: 60, rate: func(x float64) float64 { return 1 + 2*float64(int(x*6)%2) }, maxRate: 3,
		isl: func(x float64) float64 { return 1 + 2*float64(int(x*4)%2) }, osl: func(x float64) float64 { return 2 - float64(int(x*4)%2) }, turns: 3, pause: 20, system: 640},
	"diurnal": {seed: 4, minutes: 240, rate: func(x float64) float64 { return 1 + .8*math.Sin(4*math.Pi*x) }, maxRate: 1.8,
		isl: func(x float64) float64 { return 1 + .5*math.Sin(4*math.Pi*x) }, osl: constant, turns: 2.5, pause: 30, system: 1280, named: true},
}

// windowMeans returns the mean ISL and OSL in each tenth of the source's duration,
// over the repetitions of the source.
func windowMeans(rows []trace.Request, duration float64) (isl, osl [10]float64) {
	var n [10]float64
	for _, r := range rows {
		w := int(math.Mod(r.Timestamp.Value/duration, 1) * 10)
		isl[w] += float64(r.InputLength)
		osl[w] += float64(r.OutputLength)
		n[w]++
	}
	for w := range n {
		isl[w] /= n[w]
		osl[w] /= n[w]
	}
	return isl, osl
}

// Lengths that vary over time do so in drawn traces; longer ones repeat the source.
func TestVaryingLengths(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(variations)) {
		t.Run(name, func(t *testing.T) {
			rows := variations[name].rows()
			m := fit(t, rows, sessions.Options{})
			duration := rows[len(rows)-1].Timestamp.Value + 1
			wantISL, wantOSL := windowMeans(rows, duration)
			for _, times := range []int{1, 3} {
				var drawn []trace.Request // a window of one trace varies by chance
				for seed := range uint64(3) {
					drawn = append(drawn, draw(t, m, seed, times*len(rows))...)
				}
				isl, osl := windowMeans(drawn, duration)
				for w := range isl {
					if r := isl[w] / wantISL[w]; r < .85 || r > 1.15 {
						t.Errorf("%d times as long, window %d: the mean ISL is %.3f times the source's", times, w, r)
					}
					if r := osl[w] / wantOSL[w]; r < .9 || r > 1.1 {
						t.Errorf("%d times as long, window %d: the mean OSL is %.3f times the source's", times, w, r)
					}
				}
			}
		})
	}
}

// A held model continues with the lengths and the rate of the end of the source, whether
// both change or only one does.
func TestHold(t *testing.T) {
	t.Parallel()
	step := func(low, high float64) func(float64) float64 {
		return func(x float64) float64 { return low + (high-low)*math.Floor(x*1.25) }
	}
	for name, v := range map[string]varying{
		"both":    {maxRate: 3, rate: step(1, 3), isl: step(1, 4)},
		"rate":    {maxRate: 3, rate: step(1, 3), isl: constant},
		"lengths": {maxRate: 1, rate: constant, isl: step(1, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			v.seed, v.minutes, v.turns, v.pause, v.osl = 5, 40, 2, 5, constant
			rows := v.rows()
			rate := func(rows []trace.Request) float64 {
				return float64(len(rows)) / (rows[len(rows)-1].Timestamp.Value - rows[0].Timestamp.Value)
			}
			mean := func(rows []trace.Request) (isl float64) {
				for _, r := range rows {
					isl += float64(r.InputLength) / float64(len(rows))
				}
				return isl
			}
			end := rows[len(rows)-1].Timestamp.Value
			last := slices.DeleteFunc(slices.Clone(rows), func(r trace.Request) bool { return r.Timestamp.Value < .82*end })
			held := draw(t, fit(t, rows, sessions.Options{}).Hold(), 1, 3*len(rows))[len(rows)+200:]
			if r := mean(held) / mean(last); r < .85 || r > 1.15 {
				t.Errorf("the mean ISL is %.3f times that of the end of the source", r)
			}
			if r := rate(held) / rate(last); r < .85 || r > 1.15 {
				t.Errorf("the rate is %.3f times that of the end of the source", r)
			}
		})
	}
}
