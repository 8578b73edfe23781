package bench

import (
	"time"

	"moontide/replay"
	"moontide/replay/monotonic"
	"moontide/replay/openai"
)

// stampsHeader asks the simulated endpoint for the write time of each event.
var stampsHeader = openai.Header{Name: "X-Moontide-Stamps", Value: "1"}

// truth holds the times at which the endpoint wrote the tokens of a load.
type truth struct {
	load    Load
	written [][]int64 // by row and token: CLOCK_MONOTONIC in nanoseconds
}

func newTruth(load Load) *truth {
	t := &truth{load: load, written: make([][]int64, load.Requests)}
	for row := range t.written {
		t.written[row] = make([]int64, 0, load.OSL)
	}
	return t
}

// take stores the write time of an event. compare detects missing ones.
func (t *truth) take(row int, data []byte) {
	if at, ok := writtenAt(data); ok {
		t.written[row] = append(t.written[row], at)
	}
}

// writtenAt parses the write time at the end of an event.
func writtenAt(data []byte) (ns int64, ok bool) {
	const key = `"written_ns":`
	end := len(data) - 1
	if end < 0 || data[end] != '}' {
		return 0, false
	}
	begin := end
	for begin > 0 && '0' <= data[begin-1] && data[begin-1] <= '9' {
		begin--
	}
	if begin == end || end-begin > 18 || begin < len(key) || string(data[begin-len(key):begin]) != key {
		return 0, false
	}
	for _, digit := range data[begin:end] {
		ns = 10*ns + int64(digit-'0')
	}
	return ns, true
}

// compare fills in a point from the records.
func (t *truth) compare(records []replay.Record, start time.Time, p *Point) {
	zero := monotonic.At(start)
	var ttft, itl, lag []float64
	var events float64 // per second
	var first, last time.Duration
	for i, rec := range records {
		if rec.Sent.Set {
			lag = append(lag, ms(rec.ClientLag().Value))
			sent := rec.Sent.Value
			if i == 0 {
				first, last = sent, sent
			}
			first, last = min(first, sent), max(last, sent)
		}
		if rec.Class != replay.OK {
			p.Lost++
			continue
		}
		p.stamps = rec.Stamps
		stamp, gaps, ok := errorsOf(zero+int64(rec.First.Value), rec.Gaps, t.written[rec.Row])
		if !ok {
			p.Lost++
			continue
		}
		ttft = append(ttft, ms(stamp.Abs()))
		for _, gap := range gaps {
			itl = append(itl, ms(gap.Abs()))
		}
		events += tokenRate(rec.Gaps)
	}
	p.TTFT, p.ITL, p.ClientLag = spreadOf(ttft), spreadOf(itl), spreadOf(lag)
	if p.Kind == Streams {
		p.EventRate = events
	}
	if last > first {
		p.SentRate = float64(len(lag)-1) / (last - first).Seconds()
	}
}

// tokenRate returns the tokens per second of a stream with these gaps. The
// first gap is ignored because it sets the stream's phase.
func tokenRate(gaps []time.Duration) float64 {
	var sum time.Duration
	for i, gap := range gaps {
		if i > 0 {
			sum += gap
		}
	}
	if sum <= 0 {
		return 0
	}
	return float64(len(gaps)-1) / sum.Seconds()
}

// errorsOf compares the client's times of a response with the server's. first
// is the arrival of the first token, gaps are the times between tokens, and
// written holds the server's write time of each token, on the same clock in
// nanoseconds. ok is false if the token counts differ.
func errorsOf(first int64, gaps []time.Duration, written []int64) (ttft time.Duration, itl []time.Duration, ok bool) {
	if len(written) != len(gaps)+1 {
		return 0, nil, false
	}
	ttft = time.Duration(first - written[0])
	itl = make([]time.Duration, len(gaps))
	for i, gap := range gaps {
		itl[i] = gap - time.Duration(written[i+1]-written[i])
	}
	return ttft, itl, true
}
