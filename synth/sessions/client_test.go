package sessions_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/stats"
)

// load is a client of a mixed source.
type load struct {
	extra    string // unknown keys of its rows
	rate     float64
	from, to float64 // seconds
	isl, osl float64 // medians
	turns    float64 // mean
}

var loads = []load{
	{`{"user": "chat", "model": "small"}`, 1, 0, 2400, 300, 200, 4},
	{`{"user": "batch", "model": "large"}`, 1.5, 900, 1800, 3000, 20, 1},
	{`{"user": "agent", "model": "large"}`, .1, 0, 2400, 900, 60, 12},
}

// mixed draws a source with these clients.
func mixed(loads []load) []trace.Request {
	random := rand.New(rand.NewPCG(3, 4))
	var rows []trace.Request
	sessions := 0
	for _, l := range loads {
		for at := l.from; at < l.to; at += random.ExpFloat64() / l.rate {
			sessions++
			isl := 0.0
			for now, more := at, true; more && now < 2400; more = random.Float64() < 1-1/l.turns {
				isl += l.isl * math.Exp(random.NormFloat64()/2)
				rows = append(rows, trace.Request{
					Timestamp: trace.Some(math.Round(now*1e6) / 1000), SessionID: fmt.Sprint(sessions), Extra: []byte(l.extra),
					InputLength: 1 + int(isl), OutputLength: 1 + int(l.osl*math.Exp(random.NormFloat64()/2)),
				})
				now += 5 + 10*random.ExpFloat64()
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	return rows
}

// byExtra groups rows by their unknown keys.
func byExtra(rows []trace.Request) map[string][]trace.Request {
	groups := make(map[string][]trace.Request)
	for _, r := range rows {
		groups[string(r.Extra)] = append(groups[string(r.Extra)], r)
	}
	return groups
}

func meanOf(rows []trace.Request, of func(trace.Request) float64) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += of(r) / float64(len(rows))
	}
	return sum
}

func isl(r trace.Request) float64 { return float64(r.InputLength) }
func osl(r trace.Request) float64 { return float64(r.OutputLength) }

// Each client that rows name keeps its keys, share, lengths and time of activity.
func TestClients(t *testing.T) {
	t.Parallel()
	rows := mixed(loads)
	m := fit(t, rows, sessions.Options{})
	if got := m.Clients(); len(got) != 3 || got[0].Name != "chat/small" || m.SourceRequests() != len(rows) {
		t.Fatalf("clients %+v of %d requests", got, m.SourceRequests())
	}
	source, drawn := byExtra(rows), byExtra(draw(t, m, 1, len(rows)))
	if len(drawn) != len(source) {
		t.Fatalf("%d clients drawn", len(drawn))
	}
	for name, want := range source {
		got := drawn[name]
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"requests", float64(len(got)), float64(len(want))},
			{"mean ISL", meanOf(got, isl), meanOf(want, isl)},
			{"mean OSL", meanOf(got, osl), meanOf(want, osl)},
			{"end", got[len(got)-1].Timestamp.Value, want[len(want)-1].Timestamp.Value},
			{"middle", got[len(got)/2].Timestamp.Value, want[len(want)/2].Timestamp.Value},
		} {
			if math.Abs(c.got/c.want-1) > .1 {
				t.Errorf("%s: %s is %v, want %v", name, c.what, c.got, c.want)
			}
		}
	}
}

// A client alone draws what it draws among the others, and a model's file keeps
// the clients.
func TestOnly(t *testing.T) {
	m := fit(t, mixed(loads), sessions.Options{})
	read, err := sessions.Read(bytes.NewReader(saved(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	only, err := read.Only("batch/large")
	if err != nil {
		t.Fatal(err)
	}
	among := byExtra(draw(t, m, 5, 9000))[loads[1].extra]
	for i, r := range draw(t, only, 5, len(among)) {
		if w := among[i]; r.Timestamp != w.Timestamp || r.InputLength != w.InputLength || r.OutputLength != w.OutputLength || string(r.Extra) != string(w.Extra) {
			t.Fatalf("request %d is %+v, want %+v", i, r, w)
		}
	}
	if _, err := m.Only("nobody"); err == nil || !strings.Contains(err.Error(), `no client "nobody": the model has "chat/small", `) {
		t.Errorf("error %v", err)
	}
}

// A note on one of several clients names it.
func TestNotesNameClients(t *testing.T) {
	var rows []trace.Request
	for i := range 400 {
		rows = append(rows, trace.Request{Timestamp: trace.Some(0.0), InputLength: 32, OutputLength: 5, HashIDs: []uint64{uint64(2 * i), uint64(2*i + 1)},
			Extra: []byte(fmt.Sprintf(`{"user": "u%d"}`, i%2))})
	}
	m := fit(t, rows, sessions.Options{BlockSize: 16, Clients: 2})
	for _, want := range []string{"client u0: one timestamp: all sessions start at once", "client u1: one timestamp: all sessions start at once"} {
		if !slices.Contains(m.Notes(), want) {
			t.Errorf("no note %q in %q", want, m.Notes())
		}
	}
}

// Clients with few requests are pooled, which a note says.
func TestFewRequestsArePooled(t *testing.T) {
	some := slices.Clone(loads[:2])
	for i := range 40 {
		some = append(some, load{fmt.Sprintf(`{"user": "u%d", "model": "small"}`, i), .001, 0, 2400, 5000, 50, 1})
	}
	m := fit(t, mixed(some), sessions.Options{})
	got := m.Clients()
	if len(got) != 3 || got[2].Name != "rest" || got[2].ISL < 3*got[0].ISL {
		t.Fatalf("clients %+v, notes %q", got, m.Notes())
	}
	if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, `40 clients with few requests are pooled as "rest": `) {
		t.Errorf("notes: %s", notes)
	}
	for _, r := range draw(t, m, 1, 3000) {
		if strings.Contains(string(r.Extra), "u1") {
			t.Fatalf("a pooled client is named: %s", r.Extra)
		}
	}
}

func TestClientLimit(t *testing.T) {
	rows := mixed(loads)
	for limit, want := range []int{3, 1, 2, 3} {
		if m := fit(t, rows, sessions.Options{Clients: limit}); len(m.Clients()) != want {
			t.Errorf("limit %d: clients %+v, want %d", limit, m.Clients(), want)
		}
	}
}

// A key whose value changes from turn to turn does not name clients; a key with
// one value is kept.
func TestKeysThatNameNoClients(t *testing.T) {
	rows := mixed(loads[:1])
	for i := range rows {
		rows[i].Extra = fmt.Appendf(nil, `{"model": "m%d", "recorded": {"type": "text"}}`, i%2)
	}
	m := fit(t, rows, sessions.Options{})
	if c := m.Clients(); len(c) != 1 || !slices.ContainsFunc(m.Notes(), func(n string) bool { return strings.HasPrefix(n, "model changes within sessions") }) {
		t.Fatalf("clients %+v, notes %q", c, m.Notes())
	}
	if r := draw(t, m, 1, 1)[0]; string(r.Extra) != `{"recorded": {"type": "text"}}` {
		t.Errorf("drawn row has %s", r.Extra)
	}
}

// Sessions of rows without client keys are divided by what they start with.
func TestClusters(t *testing.T) {
	rows := mixed(loads[:2])
	for i := range rows {
		rows[i].Extra = nil
	}
	m := fit(t, rows, sessions.Options{Clients: 2})
	got := m.Clients()
	if len(got) != 2 {
		t.Fatalf("clients %+v, notes %q", got, m.Notes())
	}
	if !slices.ContainsFunc(got, func(c sessions.Client) bool { return math.Abs(c.OSL-22) < 8 && c.Requests-c.Sessions < c.Requests/100 }) {
		t.Errorf("no cluster is like the client batch: %+v", got)
	}
	if !bytes.Equal(saved(t, m), saved(t, fit(t, rows, sessions.Options{Clients: 2}))) {
		t.Error("the same source gives another model")
	}
	if c := fit(t, rows, sessions.Options{}).Clients(); len(c) != 1 || c[0].Name != "" {
		t.Errorf("without a number of clients: %+v", c)
	}
}

// Clusters that draw requests further from the source than one client are not learned:
// here their arrivals would be bursts of their own.
func TestClustersFurtherThanOneClient(t *testing.T) {
	rows := mixed(loads[:2])
	for i := range rows {
		rows[i].Extra = nil
		rows[i].Timestamp.Value = math.Floor(rows[i].Timestamp.Value/200_000) * 200_000
	}
	m := fit(t, rows, sessions.Options{Clients: 2})
	if c := m.Clients(); len(c) != 1 || !slices.ContainsFunc(m.Notes(), func(n string) bool {
		return strings.HasPrefix(n, "2 clients draw requests further from the source than one")
	}) {
		t.Errorf("clients %+v, notes %q", c, m.Notes())
	}
}

// Clients draw no blocks of each other but templates, and the model says how many
// requests of the source have such blocks.
func TestBlocksSharedByClientsAreNoted(t *testing.T) {
	rows := mixed(loads[:2])
	for i := range rows {
		rows[i].SessionID = ""
		rows[i].InputLength, rows[i].HashIDs = 1024, []uint64{uint64(i), uint64(i) + 1e6}
		if i > 0 && i%10 == 0 && !bytes.Equal(rows[i].Extra, rows[i-1].Extra) { // begins with the block of a row of another client
			rows[i].HashIDs[0] = rows[i-1].HashIDs[0]
		}
	}
	m := fit(t, rows, sessions.Options{BlockSize: 512, Clients: 2})
	if !slices.ContainsFunc(m.Notes(), func(n string) bool { return strings.Contains(n, "share blocks with those of another client") }) {
		t.Errorf("notes %q", m.Notes())
	}
}

// One conversation that is much larger than all others keeps its share of the
// requests and of the prompts' tokens, and is drawn once per length of the source.
func TestLongSession(t *testing.T) {
	rows := mixed([]load{{``, 1, 0, 2400, 300, 100, 1}})
	random := rand.New(rand.NewPCG(5, 6))
	id := uint64(1 << 30)
	fresh := func(ids []uint64, isl int) []uint64 {
		ids = slices.Clone(ids)
		for len(ids) < isl/512 {
			id++
			ids = append(ids, id)
		}
		return ids
	}
	for i := range rows {
		rows[i].SessionID = ""
		rows[i].HashIDs = fresh([]uint64{}, rows[i].InputLength)
	}
	tokens, ids := 2000, []uint64(nil)
	for at := 60_000.; at < 2_400_000; at += 2000 + 1000*random.ExpFloat64() {
		ids = fresh(ids, tokens)
		rows = append(rows, trace.Request{Timestamp: trace.Some(math.Round(at)), InputLength: tokens, OutputLength: 20 + random.IntN(20), HashIDs: ids})
		tokens += 30 + random.IntN(60)
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	m := fit(t, rows, sessions.Options{BlockSize: 512})
	if c := m.Clients(); len(c) != 2 || c[1].Name != "long" || c[1].Sessions != 1 {
		t.Fatalf("clients %+v, notes %q", c, m.Notes())
	}
	saved(t, m) // and read again
	for _, times := range []int{1, 3} {
		drawn := draw(t, m, 1, times*len(rows))
		if got := meanOf(drawn, isl) / meanOf(rows, isl); math.Abs(got-1) > .05 {
			t.Errorf("%d times as long: the mean ISL is %.3f times the source's", times, got)
		}
	}
	if c := fit(t, rows, sessions.Options{BlockSize: 512, Clients: 1}).Clients(); len(c) != 1 {
		t.Errorf("one client at most: %+v", c)
	}
}

// Clients whose sessions all start at once, as conversations with clocks of their own
// do, keep that and the gaps between their turns.
func TestClientsThatStartAtOnce(t *testing.T) {
	rows := mixed([]load{{loads[0].extra, 1, 0, 150, 300, 200, 8}, {loads[2].extra, 1, 0, 100, 900, 60, 8}})
	first := map[string]float64{}
	for i := range rows {
		id := rows[i].SessionID
		if _, ok := first[id]; !ok {
			first[id] = rows[i].Timestamp.Value
		}
		rows[i].Timestamp.Value -= first[id]
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	look := func(rows []trace.Request) (starts int, gaps []float64) {
		last := map[string]float64{}
		for _, r := range rows {
			if at, ok := last[r.SessionID]; ok {
				gaps = append(gaps, r.Timestamp.Value-at)
			} else if r.Timestamp.Value == 0 {
				starts++
			}
			last[r.SessionID] = r.Timestamp.Value
		}
		return starts, gaps
	}
	starts, gaps := look(rows)
	m := fit(t, rows, sessions.Options{})
	if len(m.Clients()) != 2 {
		t.Fatalf("clients %+v", m.Clients())
	}
	drawnStarts, drawnGaps := look(draw(t, m, 1, len(rows)))
	if ks := stats.KS(stats.Of(gaps), stats.Of(drawnGaps)); ks > .05 || math.Abs(float64(drawnStarts-starts)) > .1*float64(starts) {
		t.Errorf("%d sessions start at once instead of %d; KS distance of turn gaps %.3f", drawnStarts, starts, ks)
	}
}

// Two kinds of sessions that one client cannot draw are clients of their own without a
// number of clients: chat, and sets of questions about new documents all at once.
func TestKindsThatOneClientCannotDraw(t *testing.T) {
	rows := mixed([]load{{``, 1, 0, 2400, 300, 200, 3}})
	random := rand.New(rand.NewPCG(7, 8))
	id := uint64(0)
	fresh := func(ids []uint64, n int) []uint64 {
		ids = append([]uint64{}, ids...)
		for range n {
			id++
			ids = append(ids, id)
		}
		return ids
	}
	seen := map[string][]uint64{}
	for i := range rows {
		r := &rows[i]
		ids := seen[r.SessionID]
		r.HashIDs = fresh(ids, r.InputLength/64-len(ids))
		seen[r.SessionID], r.SessionID = r.HashIDs, ""
	}
	for begin := 300_000.; begin < 2_400_000; begin += 600_000 {
		for range 20 {
			document := fresh(nil, 100+random.IntN(400))
			for range 30 {
				at := math.Round(begin + 30_000*random.Float64())
				rows = append(rows, trace.Request{Timestamp: trace.Some(at), InputLength: 64*len(document) + 64, OutputLength: 5 + random.IntN(10), HashIDs: fresh(document, 1)})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	m := fit(t, rows, sessions.Options{BlockSize: 64})
	if len(m.Clients()) != 2 {
		t.Fatalf("clients %+v, notes %q", m.Clients(), m.Notes())
	}
	drawn := draw(t, m, 1, len(rows))
	if got := meanOf(drawn, isl) / meanOf(rows, isl); math.Abs(got-1) > .1 {
		t.Errorf("the mean ISL is %.3f times the source's", got)
	}
	if c := fit(t, rows, sessions.Options{BlockSize: 64, Clients: 1}).Clients(); len(c) != 1 {
		t.Errorf("one client at most: %+v", c)
	}
}

// Clients that burst together are learned as one, unless their number is given: each
// by itself would draw its own arrivals, and the bursts of all would be lost.
func TestClientsThatBurstTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	var rows []trace.Request
	for at := 0.0; len(rows) < 4000; at += random.ExpFloat64() * 20_000 {
		for range 1 + random.IntN(40) {
			rows = append(rows, trace.Request{
				Timestamp: trace.Some(math.Round(at)), InputLength: 100 + random.IntN(900), OutputLength: 1 + random.IntN(200),
				Extra: fmt.Appendf(nil, `{"user": "u%d"}`, random.IntN(20)),
			})
		}
	}
	if m := fit(t, rows, sessions.Options{}); len(m.Clients()) != 1 || !strings.Contains(strings.Join(m.Notes(), "\n"), "draw requests further from the source than one") {
		t.Errorf("%d clients, notes %q", len(m.Clients()), m.Notes())
	}
	if m := fit(t, rows, sessions.Options{Clients: 64}); len(m.Clients()) != 20 {
		t.Errorf("%d clients of 64, want the 20 of the source", len(m.Clients()))
	}
}

// Few timestamps are kept although rows name clients.
func TestClientsAtFewTimes(t *testing.T) {
	var rows []trace.Request
	for i := range 1000 {
		rows = append(rows, trace.Request{
			Timestamp: trace.Some(float64(i/100) * 60_000), InputLength: 100 + i%7, OutputLength: 10,
			Extra: fmt.Appendf(nil, `{"user": "u%d"}`, i%4),
		})
	}
	times := map[float64]bool{}
	for _, r := range draw(t, fit(t, rows, sessions.Options{}), 1, 1000) {
		times[r.Timestamp.Value] = true
	}
	if len(times) != 10 {
		t.Errorf("%d timestamps, want 10", len(times))
	}
}
