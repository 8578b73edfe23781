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

// mostWrong bounds the bad requests that are told apart, mostRequests those of
// one conversation or sub-agent.
const (
	mostWrong    = 10_000
	mostRequests = 1 << 20
)

// weka is the source of a WEKA trace: a folder of conversations, or a file of
// one or more. Requests of different conversations and sub-agents have to be
// put in one order, and their ids would fill the memory. So every file is read
// once to find where each request stands, and then each request is read where
// it stands. What is held is some 100 bytes a request, and one conversation while
// it is read.
type weka struct {
	files    []*textFile
	texts    texts
	notes    *notes
	recorded bool              // RecordedTimes
	size     int               // tokens of a block
	sizeAt   string            // the file that says so
	names    map[string]string // of conversations, and their files

	indexed bool
	failed  error   // to read the files
	wrong   []error // with what stands in them
	spots   []spot
	raw     []byte
	name    string // of the file that line is in
	line    int
}

// spot is where a request stands, and what the others say about its time.
type spot struct {
	at               float64 // ms, for the order
	timestamp, delay trace.Opt[float64]
	talk             *talk
	offset           int64
	length           int32
	number           int32 // in the list of the talk
	line             int
}

// talk is what the requests of one list have in common: they are a session.
type talk struct {
	file    *textFile
	where   string // for messages: the path of the list in the conversation
	session string
	space   namespace
	global  bool
}

// BlockSize is the tokens of a block, 0 where no conversation says it.
func (w *weka) BlockSize() int {
	w.indexAll()
	return w.size
}

func (w *weka) Line() int { return w.line }

func (w *weka) File() string { return w.name }

func (w *weka) Close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, w.texts.Close())...)
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
	w.name, w.line = s.talk.file.name, s.line
	if err := w.readAt(s, r); err != nil {
		return &trace.RowError{File: w.name, Line: w.line, Err: err}
	}
	return nil
}

// readAt reads the request that stands at a spot.
func (w *weka) readAt(s *spot, r *trace.Request) error {
	w.raw = slices.Grow(w.raw[:0], int(s.length))[:s.length]
	if err := w.texts.readAt(s.talk.file, w.raw, s.offset); err != nil {
		return trace.ReadError{Err: err}
	}
	if validObject(w.raw) != nil {
		return trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	c, err := readCall(w.raw)
	var row trace.Request
	if err == nil {
		row, err = c.request(r.HashIDs[:0], s.talk)
	}
	if err != nil {
		return fmt.Errorf("%s[%d]%w", s.talk.where, s.number, err)
	}
	row.Timestamp, row.Delay, row.SessionID = s.timestamp, s.delay, s.talk.session
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
		w.notes.countMore("conversations, each with a clock of its own, which all begin at 0 (convert --rate lets them begin one after the other)", n)
	}
}

// index finds the requests of a file. What is wrong with a part of it is kept.
func (w *weka) index(f *textFile) error {
	if err := f.begin(); err != nil {
		return err
	}
	all := newValues(w.texts.tee(f), mostWeka)
	for w.failed == nil {
		raw, err := all.next()
		if err == io.EOF {
			break
		}
		if err != nil { // what follows cannot be told apart from it
			w.fail(f, all.line, err)
			break
		}
		c, err := readConversation(raw)
		if err == nil {
			err = w.admit(&c, f)
		}
		if err != nil {
			w.fail(f, all.atLine, mixed(err, raw, Weka))
			continue
		}
		x := &indexer{
			weka: w, file: f, offset: f.base + all.at, raw: raw, line: all.atLine,
			space: namespaceOf(c.name), global: c.global, taken: map[string]int{},
		}
		x.list(c.requests, c.at, c.name, "requests", 0, 0)
	}
	return errors.Join(w.failed, f.Close())
}

// fail keeps what is wrong with a part of a file. Of too much it makes a file
// that cannot be read.
func (w *weka) fail(f *textFile, line int, err error) {
	if len(w.wrong) == mostWrong {
		w.failed = &trace.RowError{File: f.name, Line: line, Err: trace.ReadError{Err: fmt.Errorf("more than %d bad requests", mostWrong)}}
		return
	}
	w.wrong = append(w.wrong, &trace.RowError{File: f.name, Line: line, Err: err})
}

// admit checks what a conversation shares with others.
func (w *weka) admit(c *conversation, f *textFile) error {
	if other, twice := w.names[c.name]; twice {
		return fmt.Errorf("id is that of another conversation, in %s: %.60q", other, c.name)
	}
	w.names[c.name] = f.name
	switch {
	case c.blockSize == 0:
	case w.size == 0:
		w.size, w.sizeAt = c.blockSize, f.name
	case w.size != c.blockSize:
		return fmt.Errorf("block_size is not %d as in %s: %d", w.size, w.sizeAt, c.blockSize)
	}
	return nil
}

// indexer finds the requests of one conversation.
type indexer struct {
	weka   *weka
	file   *textFile
	raw    []byte
	offset int64 // of raw
	line   int   // at counted
	count  int   // bytes of raw whose lines are counted
	space  namespace
	global bool
	taken  map[string]int // sessions of sub-agents
}

// entry is one element of a list of requests, while they are put in order.
type entry struct {
	t                    float64            // ms, its own
	api, think           trace.Opt[float64] // ms
	from, length, number int32              // in the conversation, and in the list
	subagent             bool
	line                 int
}

// list follows one list of requests, which stands at in the conversation. Its
// times count from base, in ms.
func (x *indexer) list(raw []byte, at int, session, where string, base float64, depth int) {
	var entries []entry
	number := 0
	jsonscan.Elements(raw, func(from int, raw []byte) error {
		here, line := number, x.lineOf(at+from)
		number++
		if len(entries) == mostRequests {
			x.weka.fail(x.file, line, fmt.Errorf("%s has more than %d requests", where, mostRequests))
			return errStop
		}
		c, err := readCall(raw)
		if err != nil {
			x.weka.fail(x.file, line, fmt.Errorf("%s[%d]%w", where, here, err))
			return x.weka.failed
		}
		entries = append(entries, entry{
			t: c.t.Value, api: c.api, think: c.think, subagent: c.subagent,
			from: int32(at + from), length: int32(len(raw)), number: int32(here), line: line,
		})
		return nil
	})
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.t, b.t) })
	turns := turns{recorded: x.weka.recorded, notes: x.weka.notes}
	talk := &talk{file: x.file, where: where, session: session, space: x.space, global: x.global}
	for i := range entries {
		e := &entries[i]
		if x.weka.failed != nil {
			return
		}
		t := base + e.t
		if e.subagent {
			turns.called = true
			x.subagent(e, talk, base, depth)
			continue
		}
		s := spot{at: t, talk: talk, offset: x.offset + int64(e.from), length: e.length, number: e.number, line: e.line}
		s.timestamp, s.delay = turns.next(e, t)
		x.weka.spots = append(x.weka.spots, s)
	}
}

// subagent follows the requests of a sub-agent that a talk called. Newer files
// have their times since the conversation began, older ones since the call.
func (x *indexer) subagent(e *entry, caller *talk, base float64, depth int) {
	where := fmt.Sprintf("%s[%d]", caller.where, e.number)
	if depth == mostNesting {
		x.weka.fail(x.file, e.line, fmt.Errorf("%s: sub-agents are nested more than %d deep", where, mostNesting))
		return
	}
	c, _ := readCall(x.raw[e.from : e.from+e.length]) // which was read before
	since := base
	jsonscan.Elements(c.requests, func(_ int, raw []byte) error {
		if first, err := readCall(raw); err == nil && first.t.Value < e.t-1e-3 {
			since = base + e.t
			x.weka.notes.count("sub-agents whose times count from their call")
		}
		return errStop
	})
	x.weka.notes.count("sub-agents, which are sessions of their own")
	x.list(c.requests, int(e.from)+c.at, agentName(caller.session, c.agent, x.taken), where+".requests", since, depth+1)
}

// lineOf is the line of a place, counted from the one asked for before.
func (x *indexer) lineOf(at int) int {
	if at < x.count {
		x.line -= bytes.Count(x.raw[at:x.count], []byte("\n"))
	} else {
		x.line += bytes.Count(x.raw[x.count:at], []byte("\n"))
	}
	x.count = at
	return x.line
}
