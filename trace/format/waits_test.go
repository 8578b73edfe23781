package format_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/format"
)

// wekaCall is an entry of a list of WEKA requests, with times in whole milliseconds.
type wekaCall struct {
	at, took int // of a request
	calls    []wekaCall
}

func (c wekaCall) json(agent int) string {
	if c.calls != nil {
		return fmt.Sprintf(`{"t": %g, "type": "subagent", "agent_id": "a%d", "requests": %s}`, float64(c.at)/1000, agent, wekaList(c.calls))
	}
	return fmt.Sprintf(`{"t": %g, "type": "s", "in": 5, "out": 1, "api_time": %g}`, float64(c.at)/1000, float64(c.took)/1000)
}

func wekaList(calls []wekaCall) string {
	var b strings.Builder
	for i, c := range calls {
		b.WriteString(strings.Repeat(",", min(i, 1)) + c.json(i))
	}
	return "[" + b.String() + "]"
}

// anyCalls draws the requests of an agent from a time on, some of them parallel.
func anyCalls(t *rapid.T, from, depth int) (calls []wekaCall) {
	calls = append(calls, wekaCall{at: from, took: rapid.IntRange(1, 5000).Draw(t, "took")})
	for range rapid.IntRange(0, 6).Draw(t, "more") {
		from += rapid.IntRange(0, 4000).Draw(t, "gap")
		next := wekaCall{at: from, took: rapid.IntRange(1, 5000).Draw(t, "took")}
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "agent") == 0 {
			next = wekaCall{at: from, calls: anyCalls(t, from+rapid.IntRange(0, 500).Draw(t, "first"), depth-1)}
		}
		calls = append(calls, next)
	}
	return calls
}

// checkRecordedTimes sends the rows on a server that takes as long as was recorded,
// and checks that each begins when it was recorded to begin.
func checkRecordedTimes(t *rapid.T, rows []trace.Request, recorded func(trace.Request) (begin, took float64)) {
	var b trace.GraphBuilder
	for i, r := range rows {
		b.Add(r, i+1)
	}
	g, err := b.Graph()
	if err != nil || g.Lost() > 0 {
		t.Fatal(err, g.LostIDs())
	}
	ends := make([]float64, len(rows))
	var end func(row int) float64
	end = func(row int) float64 {
		if ends[row] > 0 {
			return ends[row]
		}
		begin, took := recorded(rows[row])
		begins := rows[row].Timestamp.Value
		last := 0.0
		for _, before := range g.Before(row) {
			last = max(last, end(int(before)))
		}
		if rows[row].Delay.Set {
			begins = last + rows[row].Delay.Value
		} else if last > begins+1 {
			t.Fatalf("row %d begins at %v, before the end of what it waits for at %v", row+1, begins, last)
		}
		if math.Abs(begins-begin) > 1.01 { // a recorded begin may precede an end by up to 1 ms
			t.Fatalf("row %d begins at %v, was recorded at %v\n%+v", row+1, begins, begin, rows[row])
		}
		ends[row] = begin + took
		return ends[row]
	}
	for row := range rows {
		end(row)
	}
}

// recorded reads what a row keeps of its record.
func recorded(t interface{ Fatal(...any) }, r trace.Request, into any) {
	raw, _ := r.Raw("recorded")
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		t.Fatal(err)
	}
}

// readAs reads a trace of a format. It returns its notes as text.
func readAs(t interface {
	Helper()
	Fatal(args ...any)
}, f format.Format, text string) (rows []trace.Request, notes string) {
	t.Helper()
	rows, r, err := readText(text, format.Options{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return rows, fmt.Sprint(r.Notes())
}

// TestWekaKeepsItsTimes: the requests of a conversation, with sub-agents and parallel
// ones, begin when they were recorded to begin on a server that is as fast as the
// recorded one.
func TestWekaKeepsItsTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf(`{"id": "c", "requests": %s}`, wekaList(anyCalls(t, 1, 2)))
		rows, _ := readAs(t, format.Weka, text)
		checkRecordedTimes(t, rows, func(r trace.Request) (begin, took float64) {
			var times struct {
				T   float64
				API float64 `json:"api_time"`
			}
			recorded(t, r, &times)
			return times.T * 1000, times.API * 1000
		})
	})
}

// TestDynamoKeepsItsTimes is the same for a log of agents, sub-agents and tools.
func TestDynamoKeepsItsTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		const epoch = 1_700_000_000_000
		at := epoch
		for i := range rapid.IntRange(1, 20).Draw(t, "events") {
			session := rapid.IntRange(0, 4).Draw(t, "session")
			parent := ""
			if session > 0 {
				parent = fmt.Sprintf(`,"parent_session_id":"s%d"`, rapid.IntRange(0, 4).Draw(t, "parent")) // even a cycle
			}
			at += rapid.IntRange(0, 3000).Draw(t, "gap")
			took := rapid.IntRange(1, 6000).Draw(t, "took")
			head := fmt.Sprintf(`{"event":{"schema":"dynamo.request.trace.v1","agent_context":{"session_id":"s%d"%s},`, session, parent)
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "tool") == 0 {
				lines = append(lines, head+fmt.Sprintf(`"event_type":"tool_end","tool":{"tool_class":"subagent","started_at_unix_ms":%d,"ended_at_unix_ms":%d}}}`, at, at+took))
				continue
			}
			lines = append(lines, head+fmt.Sprintf(`"event_type":"request_end","event_time_unix_ms":%d,"request":{"input_tokens":5,"output_tokens":1,"request_received_ms":%d,"total_time_ms":%d}}}`, at+took, at, took))
		}
		slices.Reverse(lines)
		rows, _ := readAs(t, format.Dynamo, strings.Join(lines, "\n"))
		first := 0.0
		checkRecordedTimes(t, rows, func(r trace.Request) (begin, took float64) {
			var times struct {
				Received float64 `json:"request_received_ms"`
				Took     float64 `json:"total_time_ms"`
			}
			recorded(t, r, &times)
			if first == 0 {
				first = times.Received
			}
			return times.Received - first, times.Took
		})
	})
}
