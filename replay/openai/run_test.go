package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"moontide/replay"
	"moontide/trace"
)

// ledger records a run and what its servers saw of it. A row is identified by its
// OSL, which is its number plus one.
type ledger struct {
	t       *testing.T
	mu      sync.Mutex
	noted   map[int]int // by row
	records map[int]int
	seen    map[int]int // by the servers
	classes map[replay.Class]int
	at      func(event string, n int) error // the n-th of noted, recorded or seen
}

var (
	asked     = regexp.MustCompile(`"max_tokens":([0-9]+)`)
	errNoRoom = errors.New("no room")
)

func (l *ledger) Sending(row int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.at("noted", len(l.noted))
	if err == nil {
		l.noted[row]++
	}
	return err
}

func (l *ledger) Record(rec replay.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lag := rec.ClientLag(); lag.Set && lag.Value < 0 {
		l.t.Errorf("row %d left %v before it was ready: sent %v, ready %v, opening %v", rec.Row, -lag.Value, rec.Sent.Value, rec.Ready, rec.ConnectTime)
	}
	if rec.Class == replay.OK && rec.Counts.Output != trace.Some(rec.Row+1) {
		l.t.Errorf("row %d got the answer to another: %+v", rec.Row, rec.Counts)
	}
	if rec.Class == replay.OK && l.seen[rec.Row] == 0 {
		l.t.Errorf("row %d ended well, and no server has seen it", rec.Row)
	}
	if err := l.at("recorded", len(l.records)); err != nil {
		return err
	}
	l.records[rec.Row]++
	l.classes[rec.Class]++
	return nil
}

// received records a request that has reached a server.
func (l *ledger) received(body string) (osl int) {
	osl, _ = strconv.Atoi(asked.FindStringSubmatch(body)[1])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at("seen", len(l.seen))
	l.seen[osl-1]++
	if l.noted[osl-1] == 0 {
		l.t.Errorf("row %d came before it was noted", osl-1)
	}
	return osl
}

// hostile misbehaves at random until it ends the connection.
func (l *ledger) hostile(p *peer) {
	for n := 0; ; n++ {
		random := rand.N(16)
		if random == 0 && n == 0 { // before anything was asked
			p.reset()
			return
		}
		r, body := p.request()
		if r == nil {
			return
		}
		usage := fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}`+"\n\n", l.received(body))
		whole := streamed + inChunk(tide+tide+finish+usage+theEnd) + lastChunk
		switch random {
		case 1:
			p.reset()
		case 2:
			p.say(whole[:len(whole)/2])
			return
		case 3:
			p.hold()
		case 4:
			p.say(streamed+inChunk(tide), inChunk("data: {half\n\n"))
		case 5:
			p.say(answerOf("429 Too Many Requests", "text/plain", "slow down"))
		case 6:
			p.say(whole)
			return // the client may have it in its pool by now
		default:
			p.say(whole)
		}
	}
}

// burstyRows are n rows that come in bursts, some of them turns of sessions.
func burstyRows(n int) (rows []trace.Request) {
	at := 0
	for i := range n {
		if rand.N(8) == 0 {
			at += rand.N(8)
		}
		r := trace.Request{Timestamp: trace.Some(float64(at)), InputLength: 1 + rand.N(2000), OutputLength: i + 1}
		if rand.N(4) == 0 {
			r.SessionID = strconv.Itoa(rand.N(8))
		}
		rows = append(rows, r)
	}
	return rows
}

// However servers behave and a run ends, each request is noted before it is sent,
// ends once and is recorded once, and the counts add up. No request gets the
// answer to another, and no connection is left open.
func TestNothingIsLostOrCountedTwice(t *testing.T) {
	t.Parallel()
	const rows = 150
	for _, end := range []string{"none", "drained", "canceled", "noted", "recorded", "closed"} {
		for stamps, edit := range readers {
			for _, kept := range []string{Pooled, Fresh} {
				l := &ledger{t: t, noted: map[int]int{}, records: map[int]int{}, seen: map[int]int{}, classes: map[replay.Class]int{}}
				first, second := serve(t, l.hostile), serve(t, l.hostile)
				c := edit(client(t, "", soon, func(cfg *Config) {
					cfg.URLs, cfg.Connections, cfg.Endpoint, cfg.Prompt = []string{first.url, second.url}, kept, Completions, Tokens
				}))
				ctx, cancel := context.WithCancel(context.Background())
				drain, stop := make(chan struct{}), 20+rand.N(rows/2)
				l.at = func(event string, n int) error {
					switch {
					case n != stop:
					case event == "noted" && end == "noted", event == "recorded" && end == "recorded":
						return errNoRoom
					case event == "seen" && end == "canceled":
						cancel()
					case event == "recorded" && end == "drained":
						close(drain)
					case event == "recorded" && end == "closed":
						c.Close()
					}
					return nil
				}
				runner := &replay.Runner{Client: c, Recorder: l, Drain: drain, Precise: rand.N(2) == 0}
				if rand.N(2) == 0 {
					runner.MaxConcurrency, runner.Closed = 1+rand.N(16), rand.N(2) == 0
				}
				tally, err := runner.Run(ctx, trace.FromSlice(burstyRows(rows)))
				cancel()
				if fails := end == "noted" || end == "recorded"; fails != errors.Is(err, errNoRoom) || !fails && err != nil {
					t.Errorf("%s, %s, %s: %v", end, stamps, kept, err)
				}
				l.agrees(fmt.Sprintf("%s, %s, %s", end, stamps, kept), tally, runner.Status(), rows)
				c.Close()
				first.wait()
				second.wait()
			}
		}
	}
}

// agrees checks a tally against the ledger.
func (l *ledger) agrees(name string, tally replay.Tally, status replay.Status, rows int) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rows := range []map[int]int{l.noted, l.records} {
		for row, n := range rows {
			if n != 1 || l.noted[row] != 1 {
				l.t.Errorf("%s: row %d is there %d times, noted %d times", name, row, n, l.noted[row])
			}
		}
	}
	for row, n := range l.seen {
		// A used connection may be closed while a request is on its way.
		if n != 1 && (n != 2 || strings.HasSuffix(name, Fresh)) {
			l.t.Errorf("%s: row %d was sent %d times", name, row, n)
		}
	}
	failed := len(l.records) - l.classes[replay.OK]
	switch {
	case tally.Sent != len(l.noted), tally.Sent != len(l.records)+tally.Unrecorded, tally.Sent+tally.Skipped > rows,
		tally.Failed < failed, tally.Failed > failed+tally.Unrecorded, tally.Unrecorded == 0 && tally.Canceled != l.classes[replay.Canceled],
		!tally.Stopped && tally.Sent+tally.Skipped != rows:
		l.t.Errorf("%s: %+v, %d noted, %d recorded, classes %v", name, tally, len(l.noted), len(l.records), l.classes)
	case status.Sent != tally.Sent, status.Done != tally.Sent, status.InFlight != 0:
		l.t.Errorf("%s: %+v of %+v", name, status, tally)
	}
}
