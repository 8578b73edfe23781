package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// maxRequests bounds the requests of a conversation or sub-agent.
const maxRequests = 1 << 20

// weka is the source of a WEKA trace: a file of conversations or a folder of such
// files. It holds about 100 bytes per request, and one conversation while
// indexing.
type weka struct {
	indexed[wekaCall]
	names map[string]string // files by conversation
	bad   int               // requests so far
}

// wekaCall is the place of a request in its session, and its times.
type wekaCall struct {
	timestamp, delay trace.Opt[float64]
	session          *session
	number           int32 // in the list of the session
}

// session holds the values shared by the requests of one list.
type session struct {
	file   *textFile
	where  string // path of the list in the conversation, for errors
	name   string
	space  namespace
	global bool
}

func (w *weka) request(raw []byte, s *spot[wekaCall], r *trace.Request) error {
	if validObject(raw) != nil {
		return trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	at := &s.about
	c, err := parseCall(raw)
	var row trace.Request
	if err == nil {
		row, err = c.request(r.HashIDs[:0], at.session)
	}
	if err != nil {
		return fmt.Errorf("%s[%d]%w", at.session.where, at.number, err)
	}
	row.Timestamp, row.Delay, row.SessionID = at.timestamp, at.delay, at.session.name
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
	all := newObjectReader(w.spooling(f), maxWeka)
	for w.failed == nil {
		raw, err := all.next()
		if err == io.EOF {
			break
		}
		if err != nil { // the next object cannot be found
			w.fail(f, all.line, err)
			break
		}
		c, err := parseConversation(raw)
		if err == nil {
			err = w.check(&c, f)
		}
		if err != nil {
			w.fail(f, all.atLine, otherFormat(err, raw, Weka))
			continue
		}
		x := &indexer{weka: w, offset: f.base + all.start, raw: raw, line: all.atLine, taken: map[string]int{}}
		own := &session{file: f, where: "requests", name: c.name, space: namespaceOf(c.name), global: c.global}
		x.list(own, c.requests, c.at, 0, 0)
	}
	return nil
}

// fail keeps the error about a part of a file. Too many make the file unreadable.
func (w *weka) fail(f *textFile, line int, err error) {
	if w.bad++; w.bad > maxWrong {
		w.failed = &trace.RowError{File: f.name, Line: line, Err: trace.ReadError{Err: fmt.Errorf("more than %d bad requests", maxWrong)}}
		return
	}
	w.wrong = append(w.wrong, &trace.RowError{File: f.name, Line: line, Err: err})
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
}

// entry is a call of a list that is being sorted.
type entry struct {
	call
	from, length, number int32 // in the conversation, and in the list
	line                 int
}

// list finds the requests of one list, at an offset of the conversation. Its times
// count from base, in ms.
func (x *indexer) list(of *session, raw []byte, at int, base float64, depth int) {
	var entries []entry
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
		c.recorded = object{} // not needed
		entries = append(entries, entry{c, int32(at + from), int32(len(raw)), int32(here), line})
		return nil
	})
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.t.Value, b.t.Value) })
	turns := turns{recorded: x.weka.recorded, notes: x.weka.notes}
	for i := range entries {
		e := &entries[i]
		if x.weka.failed != nil {
			return
		}
		t := base + e.t.Value
		if e.subagent {
			turns.called = true
			x.subagent(e, of, base, depth)
			continue
		}
		about := wekaCall{session: of, number: e.number}
		about.timestamp, about.delay = turns.next(e, t)
		x.weka.spots = append(x.weka.spots, spot[wekaCall]{t, of.file, x.offset + int64(e.from), e.length, int32(e.line), about})
	}
}

// subagent finds the requests of a sub-agent. Their times count from the start of
// the conversation in newer files, from the call in older ones.
func (x *indexer) subagent(e *entry, caller *session, base float64, depth int) {
	where := fmt.Sprintf("%s[%d]", caller.where, e.number)
	if depth == maxNesting {
		x.weka.fail(caller.file, e.line, fmt.Errorf("%s: sub-agents are nested more than %d deep", where, maxNesting))
		return
	}
	since := base
	jsonscan.Elements(e.requests, func(_ int, raw []byte) error {
		if first, err := parseCall(raw); err == nil && first.t.Value < e.t.Value-1e-3 {
			since = base + e.t.Value
			x.weka.notes.count("sub-agents whose times count from their call")
		}
		return errStop
	})
	x.weka.notes.count("sub-agents, written as sessions of their own")
	own := *caller
	own.name, own.where = agentName(caller.name, e.agent, x.taken), where+".requests"
	x.list(&own, e.requests, int(e.from)+e.at, since, depth+1)
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
