package live

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// record returns a successful request with gaps of 20 ms between tokens.
func record(ttft time.Duration, tokens int) replay.Record {
	rec := replay.Record{
		Request: trace.Request{InputLength: 100, OutputLength: tokens}, Ready: time.Second, Sent: trace.Some(time.Second + time.Millisecond),
		Chunks: tokens, Counts: replay.Counts{Output: trace.Some(tokens)},
	}
	rec.First = trace.Some(rec.Sent.Value + ttft)
	for range tokens - 1 {
		rec.Gaps = append(rec.Gaps, 20*time.Millisecond)
	}
	rec.Last = trace.Some(rec.First.Value + time.Duration(tokens-1)*20*time.Millisecond)
	return rec
}

func started(name string) *Metrics {
	m := NewMetrics()
	m.Start(Run{
		Name: name, Trace: "t.jsonl", Model: "m", Rows: 7, Status: func() replay.Status { return replay.Status{Sent: 5, InFlight: 2} },
		Verdict: func(lag, ttft time.Duration) string {
			return map[bool]string{true: "SUSPECT", false: "VALID"}[lag > 2*time.Millisecond]
		},
	})
	return m
}

// line is a line of Prometheus' format.
var line = regexp.MustCompile(`^(# (HELP|TYPE) [a-z0-9_]+ .+|[a-z0-9_]+\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} [0-9.e+-]+)$`)

func TestMetrics(t *testing.T) {
	m := started(`a "b"\`)
	for range 3 {
		m.Record(record(100*time.Millisecond, 5))
	}
	m.Record(replay.Record{Class: replay.Timeout})
	text := string(m.AppendText(nil))
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("no sample: %s", l)
		}
	}
	for _, want := range []string{
		`requests_sent_total{RUN} 5`, `requests_in_flight{RUN} 2`, `trace_requests{RUN} 7`,
		`requests_total{RUN,class="ok"} 3`, `requests_total{RUN,class="timeout"} 1`,
		`prompt_tokens_total{RUN} 300`, `generation_tokens_total{RUN} 15`,
		`time_to_first_token_seconds_count{RUN} 3`, `time_to_first_token_seconds_sum{RUN} 0.3`,
		`inter_token_latency_seconds_count{RUN} 12`, `e2e_request_latency_seconds_sum{RUN} 0.54`,
		`time_to_first_token_seconds_bucket{RUN,le="0.098304"} 0`, `time_to_first_token_seconds_bucket{RUN,le="0.114688"} 3`,
		`time_to_first_token_seconds_bucket{RUN,le="+Inf"} 3`, `client_lag_seconds_count{RUN} 3`,
		`verdict{RUN,level="VALID"} 1`, `verdict{RUN,level="INVALID"} 0`,
	} {
		name, _, _ := strings.Cut(regexp.MustCompile(`_(bucket|sum|count)\{`).ReplaceAllString(want, "{"), "{")
		want = "\nmoontide_" + strings.Replace(want, "RUN", `run="a \"b\"\\"`, 1) + "\n"
		if !strings.Contains(text, want) || strings.Index(text, "# TYPE moontide_"+name+" ") > strings.Index(text, want) {
			t.Errorf("no%sbehind its type in\n%s", want, text)
		}
	}
	m.Start(Run{Name: "next", Status: func() replay.Status { return replay.Status{} }})
	if text := string(m.AppendText(nil)); !strings.Contains(text, `moontide_requests_total{run="next",class="ok"} 0`) {
		t.Errorf("the next run starts with\n%s", text)
	}
}

// The queries of the dashboard, also that of its variable, name metrics that exist.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	m := started("a")
	m.Record(record(time.Second, 2))
	exported := string(m.AppendText(nil))
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
	}
	names := regexp.MustCompile(`moontide_\w+`).FindAllString(string(text), -1) // of panels and variables
	for _, name := range names {
		if !strings.Contains(exported, "\n"+name+"{") {
			t.Errorf("%s is not exported", name)
		}
	}
	if len(dashboard.Panels) == 0 || names == nil {
		t.Error("the dashboard is empty")
	}
}

func TestServer(t *testing.T) {
	s, err := Listen("127.0.0.1:0", started("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, want := range map[string]string{"/metrics": "200 OK", "/": "404 Not Found"} {
		conn, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path)
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+want) || strings.Contains(string(answer), "moontide_requests_in_flight") != (path == "/metrics") {
			t.Errorf("%s: %v\n%s", path, err, answer)
		}
		conn.Close()
	}
	if _, err := Listen(s.Address(), started("b")); err == nil {
		t.Error("a second server listens on the same address")
	}
}

// The cost of a request without gaps, and of a gap.
func BenchmarkRecord(b *testing.B) {
	m, rec := started("a"), record(100*time.Millisecond, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.Record(rec)
	}
}

func BenchmarkGap(b *testing.B) {
	m, rec := started("a"), record(100*time.Millisecond, 1001)
	b.ReportAllocs()
	for b.Loop() {
		m.Record(rec)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/gap")
}

// Metrics cost no memory.
func TestNoAllocations(t *testing.T) {
	m, rec := started("a"), record(100*time.Millisecond, 100)
	if n := testing.AllocsPerRun(100, func() { m.Record(rec) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}
