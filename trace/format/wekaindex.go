package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// maxRequests bounds the requests of a conversation or sub-agent.
const maxRequests = 1 << 20

// weka is the source of a WEKA trace: a file of conversations or a folder of such
// files. It holds about 70 bytes per request, 8 for each that another waits for
// besides its previous turn, and one conversation while indexing.
type weka struct {
	indexed[wekaCall]
	names map[string]string // files by conversation
	links links
	lists []wekaList // by number of the session
}

// wekaCall is the place of a request in its list, and its start.
type wekaCall struct {
	start
	ref
}

// wekaList holds the values shared by the requests of one list, which is a session.
type wekaList struct {
	file   *textFile
	where  string // path of the list in the conversation, for errors
	name   string
	space  namespace
	global bool
}

func newWeka(t textFiles) *weka {
	w := &weka{names: map[string]string{}, links: links{notes: t.notes}}
	w.textFiles, w.layout = t, w
	return w
}

func (w *weka) request(raw []byte, s *spot[wekaCall], r *trace.Request) error {
	if validObject(raw) != nil {
		return trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	at := &s.about
	of := &w.lists[at.session]
	c, err := parseCall(raw)
	var row trace.Request
	if err == nil {
		row, err = c.request(r.HashIDs[:0], of)
	}
	if err != nil {
		return fmt.Errorf("%s[%d]%w", of.where, at.number, err)
	}
	row.SessionID = of.name
	w.links.set(&row, at.start, at.ref)
	*r = row
	return nil
}

func (w *weka) complete() {
	if n := len(w.names); n > 1 {
		w.notes.countMany("conversations that all start at time 0, as each has its own clock (set a rate to spread their starts)", n)
	}
}

// index finds the requests of a file, and keeps errors about parts of it.
func (w *weka) index(f *textFile) error {
	w.objects(f, newObjectReader(w.spooling(f), maxWeka), func(raw []byte, offset int64, line int) error {
		c, err := parseConversation(raw)
		if err == nil {
			err = w.check(&c, f)
		}
		if err != nil {
			return otherFormat(err, raw, Weka)
		}
		x := &indexer{weka: w, offset: offset, raw: raw, line: line, taken: map[string]int{}}
		x.list(wekaList{f, "requests", c.name, namespaceOf(c.name), c.global}, c.list.raw, c.list.at, 0, nil)
		return nil
	})
	return nil
}

// check checks a conversation against the previous ones.
func (w *weka) check(c *conversation, f *textFile) error {
	if other, twice := w.names[c.name]; twice {
		return fmt.Errorf("id is already used by a conversation in %s: %.60q", other, c.name)
	}
	w.names[c.name] = f.name
	return keyed("block_size", w.setBlockSize(c.blockSize, f.name, 0))
}

// indexer finds the requests of one conversation.
type indexer struct {
	weka    *weka
	raw     []byte
	offset  int64          // of raw
	line    int            // at counted
	counted int            // bytes of raw whose lines are counted
	taken   map[string]int // names of sub-agents' sessions
	step    float64        // of the clock, in ms
}

// entry is a call of a list that is being sorted.
type entry struct {
	call
	from, length, number int32 // in the conversation, and in the list
	line                 int
}

// entries returns the calls of a list, at an offset of the conversation, in order of
// their times.
func (x *indexer) entries(of *wekaList, raw []byte, at int) (entries []entry) {
	number := 0
	jsonscan.Elements(raw, func(from int, raw []byte) error {
		here, line := number, x.lineOf(at+from)
		number++
		if len(entries) == maxRequests {
			x.weka.fail(of.file, line, fmt.Errorf("%s has more than %d requests", of.where, maxRequests))
			return errStop
		}
		c, err := parseCall(raw)
		if err != nil {
			x.weka.fail(of.file, line, fmt.Errorf("%s[%d]%w", of.where, here, err))
			return x.weka.failed
		}
		c.recorded = jsonscan.Object{} // not needed
		entries = append(entries, entry{c, int32(at + from), int32(len(raw)), int32(here), line})
		return nil
	})
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.t.Value, b.t.Value) })
	return entries
}

// clockStep returns the step of the clock of a conversation in ms: some have whole
// seconds.
func clockStep(entries []entry) float64 {
	for i := range entries {
		if math.Mod(entries[i].t.Value, 1000) != 0 {
			return 1
		}
	}
	return 1000
}

// caller is what the first requests of a sub-agent wait for.
type caller struct {
	request []part // none if no request had ended
	depth   int
}

// list finds the requests of one list, at an offset of the conversation, and returns
// them as a part of the list of their caller, which is nil for the main agent. Their
// times count from base, in ms.
func (x *indexer) list(list wekaList, raw []byte, at int, base float64, by *caller) part {
	w := x.weka
	session := w.links.newSession(list.name)
	w.lists = append(w.lists, list)
	entries := x.entries(&list, raw, at)
	l := turns{indexer: x, session: session, by: by}
	if by == nil {
		x.step = clockStep(entries)
	}
	l.slack = x.step
	begin := math.Inf(1)
	for i := range entries {
		e := &entries[i]
		if w.failed != nil {
			break
		}
		t := base + e.t.Value
		begin = min(begin, t)
		if e.subagent() {
			x.subagent(e, list, base, &l)
			continue
		}
		about := wekaCall{start{ms: t, waits: previousTurn}, ref{session, e.number}}
		if !w.recorded {
			var err error
			if about.start, err = l.next(e, t); err != nil {
				w.fail(list.file, e.line, fmt.Errorf("%s[%d]: %w", list.where, e.number, err))
			}
		}
		w.spots = append(w.spots, spot[wekaCall]{t, list.file, x.offset + int64(e.from), e.length, int32(e.line), about})
	}
	return l.agentSince(begin)
}

// subagent finds the requests of a sub-agent. Their times count from the start of
// the conversation in newer files, from the call in older ones.
func (x *indexer) subagent(e *entry, list wekaList, base float64, of *turns) {
	where := fmt.Sprintf("%s[%d]", list.where, e.number)
	by := &caller{depth: 1}
	if of.by != nil {
		by.depth = of.by.depth + 1
	}
	if by.depth > maxNesting {
		x.weka.fail(list.file, e.line, fmt.Errorf("%s: sub-agents are nested more than %d deep", where, maxNesting))
		return
	}
	since := base
	jsonscan.Elements(e.list.raw, func(_ int, raw []byte) error {
		if first, err := parseCall(raw); err == nil && first.t.Value < e.t.Value-1e-3 {
			since = base + e.t.Value
			x.weka.notes.count("sub-agents whose times count from their call")
		}
		return errStop
	})
	x.weka.notes.count("sub-agents, written as sessions of their own")
	list.name, list.where = agentName(list.name, e.agent, x.taken), where+".requests"
	by.request = of.caller(base + e.t.Value)
	if p := x.list(list, e.list.raw, int(e.from)+e.list.at, since, by); len(p.last) > 0 {
		of.add(p)
	}
}

// turns finds the starts of the requests of one list.
type turns struct {
	timeline
	*indexer
	session int32
	by      *caller    // nil for the main agent
	stopped delayCause // as the request before stopped
}

// next returns the start of the next request, which was recorded at t.
func (l *turns) next(e *entry, t float64) (start, error) {
	notes := l.weka.notes
	parts := l.until(t)
	if len(parts) == 0 && l.by != nil {
		parts = l.by.request
	}
	s, err := l.weka.links.start(t, parts, l.previous)
	joins := slices.ContainsFunc(parts, func(p part) bool { return p.agent })
	follows := l.previous != nil && s.waits == previousTurn
	switch {
	case follows && e.think.Set:
		s.ms, s.delays = e.think.Value, true
	case follows && !s.delays:
		notes.count("turns with neither a think_time nor an api_time before them, with a timestamp instead of a delay")
	case len(parts) > 0 && !s.delays:
		notes.count("requests without an api_time before them, with a timestamp instead of a delay")
	}
	switch s.kind = cmp.Or(e.before, l.stopped); {
	case l.by != nil, joins && e.before == unknownCause: // no user talks to a sub-agent
		s.kind = toolRunning
	}
	end := math.NaN()
	if e.api.Set {
		end = t + e.api.Value
	}
	l.addRequest(t, end, ref{l.session, e.number})
	l.stopped = e.next
	return s, err
}

// lineOf returns the line of an offset. It counts from the offset of the previous
// call.
func (x *indexer) lineOf(at int) int {
	if at < x.counted {
		x.line -= bytes.Count(x.raw[at:x.counted], []byte("\n"))
	} else {
		x.line += bytes.Count(x.raw[x.counted:at], []byte("\n"))
	}
	x.counted = at
	return x.line
}
