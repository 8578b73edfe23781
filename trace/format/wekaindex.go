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

const (
	maxWrong    = 10_000  // bad requests in a trace
	maxRequests = 1 << 20 // requests of a conversation or sub-agent
)

// weka is the source of a WEKA trace: a file of conversations or a folder of such
// files. The requests have to be sorted, and their block ids may not fit in
// memory: see textFiles. It holds about 100 bytes per request, and one
// conversation while indexing.
type weka struct {
	textFiles
	names map[string]string // files by conversation

	indexed bool
	failed  error   // the first reading
	wrong   []error // bad requests
	spots   []spot
}

// spot is the position of a request, and its times.
type spot struct {
	at               float64 // ms, for the order
	timestamp, delay trace.Opt[float64]
	session          *session
	offset           int64
	length           int32
	number           int32 // in the list of the session
	line             int
}

// session holds the values shared by the requests of one list.
type session struct {
	file   *textFile
	where  string // path of the list in the conversation, for errors
	name   string
	space  namespace
	global bool
}

// BlockSize returns the tokens of a block, 0 if no conversation declares it.
func (w *weka) BlockSize() int {
	w.indexAll()
	return w.size
}

func (w *weka) Read(r *trace.Request) error {
	w.indexAll()
	if len(w.wrong) > 0 {
		err := w.wrong[0]
		w.wrong = w.wrong[1:]
		return err
	}
	if w.failed != nil {
		return w.failed
	}
	if len(w.spots) == 0 {
		return io.EOF
	}
	s := &w.spots[0]
	w.spots = w.spots[1:]
	w.name, w.line = s.session.file.name, s.line
	if err := w.readSpot(s, r); err != nil {
		return &trace.RowError{File: w.name, Line: w.line, Err: err}
	}
	return nil
}

func (w *weka) readSpot(s *spot, r *trace.Request) error {
	raw, err := w.readAt(s.session.file, s.offset, s.length)
	if err != nil {
		return trace.ReadError{Err: err}
	}
	if validObject(raw) != nil {
		return trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	c, err := parseCall(raw)
	var row trace.Request
	if err == nil {
		row, err = c.request(r.HashIDs[:0], s.session)
	}
	if err != nil {
		return fmt.Errorf("%s[%d]%w", s.session.where, s.number, err)
	}
	row.Timestamp, row.Delay, row.SessionID = s.timestamp, s.delay, s.session.name
	*r = row
	return nil
}

// indexAll finds the requests of all files, once.
func (w *weka) indexAll() {
	if w.indexed {
		return
	}
	w.indexed = true
	for _, f := range w.files {
		if w.failed = w.index(f); w.failed != nil {
			return
		}
	}
	slices.SortStableFunc(w.spots, func(a, b spot) int { return cmp.Compare(a.at, b.at) })
	if n := len(w.names); n > 1 {
		w.notes.countMany("conversations that all start at time 0, as each has its own clock (set a rate to spread their starts)", n)
	}
}

// index finds the requests of a file, and keeps errors about parts of it.
func (w *weka) index(f *textFile) error {
	if err := f.open(); err != nil {
		return err
	}
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
	return errors.Join(w.failed, f.Close())
}

// fail keeps the error about a part of a file. Too many make the file unreadable.
func (w *weka) fail(f *textFile, line int, err error) {
	if len(w.wrong) == maxWrong {
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
		s := spot{at: t, session: of, offset: x.offset + int64(e.from), length: e.length, number: e.number, line: e.line}
		s.timestamp, s.delay = turns.next(e, t)
		x.weka.spots = append(x.weka.spots, s)
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
