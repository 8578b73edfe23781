package format

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

const (
	maxWeka     = 256 << 20 // bytes of a conversation
	maxRequests = 1 << 20   // of a conversation or sub-agent
	maxNesting  = 16        // of sub-agents
)

// weka is the source of a WEKA trace: a file of conversations or a folder of such files. A
// conversation is a JSON object. Its requests have times in seconds since it began, and block
// ids that are unique only within it. Its sub-agents are listed among its requests and have
// their own lists of requests.
type weka struct {
	agents
	names map[string]string // files by conversation
	taken map[string]int    // names of sub-agents' sessions

	global bool // block ids are shared by all conversations
	space  namespace
}

func newWeka(t textFiles) *weka {
	w := &weka{agents: agents{numbers: map[string]int32{}}, names: map[string]string{}, taken: map[string]int{}}
	w.textFiles, w.layout = t, w
	return w
}

func (w *weka) split(t *Text) units { return t.objects(maxWeka) }

func (w *weka) complete() {
	if n := len(w.names); n > 1 {
		w.notes.countMany("conversations that all start at time 0, as each has its own clock (set a rate to spread their starts)", n)
	}
}

// requestList is a list of requests, and the lines before it in what has it.
type requestList struct {
	raw   []byte
	lines int
}

// requestsOf returns a field that keeps the list of requests of an object.
func requestsOf(object []byte, to *requestList) field {
	return func(at int, raw []byte) (err error) {
		to.lines = bytes.Count(object[:at], []byte("\n"))
		to.raw, err = parseArray(raw)
		return err
	}
}

// index adds the requests of a conversation, and keeps the errors about them.
func (w *weka) index(raw []byte) error {
	var name, scope string
	var size int
	var requests requestList
	err := readRow(raw, keys{
		{"id", into(&name, parseString)},
		{"block_size", into(&size, parseBlockSize)},
		{"hash_id_scope", into(&scope, parseString)},
		{"requests", requestsOf(raw, &requests)},
	}, nil, nil, "id", "requests")
	switch other, twice := w.names[name]; {
	case err != nil:
		return err
	case scope != "" && scope != "local" && scope != "global":
		return fmt.Errorf("hash_id_scope is neither local nor global")
	case twice:
		return fmt.Errorf("id is already used by a conversation in %s", other)
	}
	w.names[name] = w.name
	w.global, w.space = scope == "global", namespaceOf(name)
	if err := w.setBlockSize(size); err != nil {
		return keyed("block_size", err)
	}
	w.addList(&wekaList{name: name, where: "requests"}, requests.raw, w.line+requests.lines)
	return nil
}

// wekaEntry is an entry of a list of requests: a request or a sub-agent.
type wekaEntry struct {
	t, api, think trace.Opt[float64] // ms
	in, out       trace.Opt[int]
	hashes, model []byte
	list          requestList // of a sub-agent
	agent, kind   string
	before, next  trace.DelayKind // of the delay before it and of that after it
	recorded      jsonscan.Object
	number, line  int // in the list, and in the file
}

func parseEntry(raw []byte) (e wekaEntry, err error) {
	err = readMembers(".", raw, keys{
		{"in", optional(&e.in, parseLength)},
		{"out", optional(&e.out, parseLength)},
		{"hash_ids", into(&e.hashes, parseAnything)},
		{"model", into(&e.model, parseAnything)},
		{"requests", requestsOf(raw, &e.list)},
		{"input_types", into(&e.before, func(raw []byte) (trace.DelayKind, error) { return kindIn(raw, `"tool_result"`, `"text"`), nil })},
		{"output_types", into(new([]byte), parseAnything)},
	}, keys{
		{"t", optional(&e.t, parseSeconds)},
		{"api_time", optional(&e.api, parseSeconds)},
		{"think_time", optional(&e.think, parseSeconds)},
		{"agent_id", into(&e.agent, parseString)},
		{"type", into(&e.kind, parseString)},
		{"stop", into(&e.next, func(raw []byte) (trace.DelayKind, error) { return kindIn(raw, `"tool_use"`, `"end_turn"`), nil })},
	}, &e.recorded)
	switch {
	case err != nil:
		return e, err
	case !e.t.Set:
		return e, fmt.Errorf(" has no t: %s", Quote(raw))
	case e.subagent() && e.list.raw == nil:
		return e, fmt.Errorf(" is a sub-agent without requests: %s", Quote(raw))
	case !e.subagent() && (!e.in.Set || !e.out.Set):
		return e, fmt.Errorf(" needs both in and out: %s", Quote(raw))
	}
	return e, nil
}

// kindIn returns the kind of a delay: that of a tool if a value has one text, that of the user
// if it has the other.
func kindIn(raw []byte, tool, user string) trace.DelayKind {
	switch {
	case bytes.Contains(raw, []byte(tool)):
		return trace.Tool
	case bytes.Contains(raw, []byte(user)):
		return trace.Think
	}
	return ""
}

func (e *wekaEntry) subagent() bool { return e.kind == "subagent" }

// wekaList is a list of requests that is being read, the session of an agent.
type wekaList struct {
	timeline
	name    string
	where   string // path of the list in the conversation, for errors
	session int32
	called  float64         // time of the call of a sub-agent
	base    float64         // ms from which its times count
	depth   int             // 0 for the main agent
	caller  []part          // what the first requests of a sub-agent wait for
	stopped trace.DelayKind // as the request before stopped
}

// addList adds the requests of a list, whose first line is given. The times of a sub-agent
// count from the start of the conversation in newer files, from the call in older ones.
func (w *weka) addList(l *wekaList, raw []byte, line int) {
	l.session = w.sessionOf(l.name)
	entries := w.entries(l, raw, line)
	if l.depth == 0 { // some clocks have whole seconds
		l.slack = 1000
		if slices.ContainsFunc(entries, func(e wekaEntry) bool { return math.Mod(e.t.Value, 1000) != 0 }) {
			l.slack = 1
		}
	} else {
		if len(entries) > 0 && entries[0].t.Value < l.called-1e-3 {
			l.base += l.called
			w.notes.count("sub-agents whose times count from their call")
		}
		w.notes.count("sub-agents, written as sessions of their own")
	}
	for i := range entries {
		e := &entries[i]
		add := w.addRequest
		if e.subagent() {
			add = w.addSubagent
		}
		if err := add(l, e); err != nil {
			w.fail(e.line, fmt.Errorf("%s[%d]%w", l.where, e.number, err))
		}
		if w.failed != nil {
			return
		}
	}
}

// entries returns the entries of a list in order of their times.
func (w *weka) entries(l *wekaList, list []byte, line int) (entries []wekaEntry) {
	number, seen := 0, 0
	jsonscan.Elements(list, func(at int, raw []byte) error {
		line += bytes.Count(list[seen:at], []byte("\n"))
		seen = at
		if len(entries) == maxRequests {
			err := fmt.Errorf("%s has more than %d requests", l.where, maxRequests)
			w.fail(line, err)
			return err
		}
		e, err := parseEntry(raw)
		if err != nil {
			w.fail(line, fmt.Errorf("%s[%d]%w", l.where, number, err))
		} else {
			e.number, e.line = number, line
			entries = append(entries, e)
		}
		number++
		return w.failed
	})
	slices.SortStableFunc(entries, func(a, b wekaEntry) int { return cmp.Compare(a.t.Value, b.t.Value) })
	return entries
}

// addSubagent adds the requests of a sub-agent.
func (w *weka) addSubagent(l *wekaList, e *wekaEntry) error {
	if l.depth == maxNesting {
		return fmt.Errorf(": sub-agents are nested more than %d deep", maxNesting)
	}
	of := &wekaList{
		timeline: timeline{slack: l.slack}, name: agentName(l.name, e.agent, w.taken), where: fmt.Sprintf("%s[%d].requests", l.where, e.number),
		called: e.t.Value, base: l.base, depth: l.depth + 1, caller: l.timeline.caller(l.base + e.t.Value),
	}
	w.addList(of, e.list.raw, e.line+e.list.lines)
	if len(of.parts) == 0 {
		return nil
	}
	return keyed(":", l.add(of.agent()))
}

// addRequest adds a request.
func (w *weka) addRequest(l *wekaList, e *wekaEntry) (err error) {
	row := trace.Request{
		SessionID: l.name, InputLength: e.in.Value, OutputLength: e.out.Value,
		Extra: unknownKeys(e.model, e.recorded, false),
	}
	if e.hashes != nil {
		if row.HashIDs, err = parseIDs(e.hashes, w.ids, row.InputLength); err != nil {
			return keyed(".hash_ids", err)
		}
		if !w.global {
			w.space.apply(row.HashIDs)
		}
	}
	t := l.base + e.t.Value
	start := call{ref: ref{l.session, int32(e.number)}, ms: t, end: math.NaN()}
	if e.api.Set {
		start.end = t + e.api.Value
	}
	if !w.recorded {
		err = w.startOf(l, e, &start, t)
	}
	if err == nil {
		err = w.addRow(&row, t, e.line, start)
	}
	return keyed(":", err)
}

// startOf finds the start of a request, which was recorded at t.
func (w *weka) startOf(l *wekaList, e *wekaEntry, start *call, t float64) error {
	first, parts := l.previous == nil, l.until(t)
	if len(parts) == 0 {
		parts = l.caller
	}
	_, err := w.next(&l.timeline, start, t, parts)
	follows := !first && start.after == nil
	switch {
	case follows && e.think.Set:
		start.ms, start.delays = e.think.Value, true
	case follows && !start.delays:
		w.notes.count("turns with neither a think_time nor an api_time before them, with a timestamp instead of a delay")
	case len(parts) > 0 && !start.delays:
		w.notes.count("requests without an api_time before them, with a timestamp instead of a delay")
	}
	start.kind = cmp.Or(e.before, start.kind, l.stopped)
	if l.depth > 0 { // no user talks to a sub-agent
		start.kind = trace.Tool
	}
	l.stopped = e.next
	return err
}

// agentName returns the name of a sub-agent's session. taken counts the names in
// use.
func agentName(session, agent string, taken map[string]int) string {
	first := session + "/" + cmp.Or(agent, "agent")
	name := first
	for taken[name] > 0 {
		taken[first]++
		name = first + "#" + strconv.Itoa(taken[first])
	}
	taken[name]++
	return name
}
