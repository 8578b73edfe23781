package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"moontide/trace"
	"moontide/trace/log"
)

// mostTurns bounds the prompts that later ones can continue.
const mostTurns = 1 << 20

// requestLog is the source of a log of requests. Its errors and notes quote none of its values.
// It holds about 100 bytes per request, and per part of one that the log has apart from it.
type requestLog struct {
	indexed[logged]
	cfg      log.Config
	keys     log.Keys
	read     *log.Reader
	rows     *log.Rows
	sessions *log.Sessions
	parts    []spot[logged]
	turns    int
	texts    textSize
	assumed  bool // nobody gave the bytes per token
}

// logged is where an entry is, beside its spot.
type logged struct {
	layout   log.Layout
	key      uint64 // see joinKey
	from, to int    // its parts
}

func newRequestLog(t textFiles, configure func() (log.Config, error)) (*requestLog, error) {
	name := t.files[0].name
	if configure == nil {
		return nil, fmt.Errorf("opening trace: %s is a log of requests with their texts: convert it to a trace first", name)
	}
	cfg, err := configure()
	if err == nil {
		err = cfg.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("opening trace: %s: %w", name, err)
	}
	l := &requestLog{
		assumed: cfg.Encoder == nil && cfg.BytesPerToken == 0,
		cfg:     cfg.WithDefaults(), keys: cfg.Key.Keys(), read: log.NewReader(cfg),
		sessions: log.NewSessions(mostTurns),
	}
	l.textFiles, l.layout = t, l
	return l, nil
}

// BlockSize returns the tokens of a block.
func (l *requestLog) BlockSize() int { return l.cfg.BlockSize }

// split splits a file into lines, or into the objects of an array or over lines.
func (l *requestLog) split(t *Text) units {
	if overLines(t.Head()) {
		return t.objects(MaxRow)
	}
	return t.Line
}

// overLines reports whether the text is an array, or an object over several lines. A
// first line that is cut off, but has another entry behind it, is one of many.
func overLines(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if bytes.HasPrefix(head, []byte("[")) {
		return true
	}
	line, rest, more := bytes.Cut(head, []byte("\n"))
	return more && len(rest) > 0 && rest[0] != '{' && !json.Valid(line)
}

// index adds the entries in an object.
func (l *requestLog) index(object []byte) error {
	if validObject(object) != nil {
		return errors.New("not a JSON object, or cut off")
	}
	line, seen := l.line, 0
	return log.Split(object, func(layout log.Layout, at int, raw []byte) error {
		line += bytes.Count(object[seen:at], []byte("\n"))
		seen = at
		if err := l.addEntry(layout, line, raw); err != nil {
			l.fail(line, err)
		}
		return nil
	})
}

// addEntry adds an entry, which is at a line.
func (l *requestLog) addEntry(layout log.Layout, line int, raw []byte) error {
	e, err := log.Parse(layout, raw)
	if no, ok := err.(log.NoRequest); ok {
		l.notes.count(no.Error())
		return nil
	}
	if err != nil {
		return err
	}
	at := math.NaN()
	if !e.Begin.IsZero() {
		at = float64(e.Begin.UnixMicro()) / 1000
	}
	err = l.add(raw, at, line, logged{layout: layout, key: joinKey(e)})
	if last := len(l.spots) - 1; e.Part && err == nil {
		l.parts, l.spots = append(l.parts, l.spots[last]), l.spots[:last]
	}
	return err
}

// complete leaves out the entries without a time if others have one.
func (l *requestLog) complete() {
	l.notes.say("the log has no times of single tokens")
	l.joinParts()
	timed := 0
	for timed < len(l.spots) && math.IsNaN(l.spots[timed].at) {
		timed++
	}
	switch {
	case len(l.spots) == 0:
	case timed == len(l.spots):
		l.notes.say("no arrivals: the log has none (set a rate to add arrivals)")
	case timed > 0:
		l.notes.countMany("requests without a time left out", timed)
		l.spots = l.spots[timed:]
	}
	l.measureTexts()
	var start time.Time
	if len(l.spots) > 0 && !math.IsNaN(l.spots[0].at) {
		start = time.UnixMicro(int64(math.Round(l.spots[0].at * 1000)))
	}
	l.rows = log.NewRows(l.cfg, start)
}

// request makes a row of the entry at a spot.
func (l *requestLog) request(raw []byte, s *spot[logged], r *trace.Request) error {
	e, err := l.parse(raw, s.about)
	if err != nil {
		return err
	}
	*r = l.row(e)
	if len(l.spots) == 0 {
		l.noteTextSize()
	}
	return nil
}

// row makes a row of an entry.
func (l *requestLog) row(e *log.Entry) trace.Request {
	x := log.Exchange{Accepted: e.Outcome == log.OK, Input: e.Input, Output: e.Output}
	session := l.readPrompt(e, &x)
	l.turns++
	at := strconv.FormatInt(e.Begin.UnixNano(), 36) + " " + strconv.Itoa(l.turns) + " " + e.ID
	x.Turn = &log.Turn{ID: l.keys.Requests.Name(at), Arrived: e.Begin, Ended: e.End, EndUnknown: e.End.IsZero()}
	l.sessions.Join(x.Turn, l.keys.Sessions.Name(session), x.Blocks, l.keys.Sessions.Name(at))
	if e.Response != "" && !e.Output.Set {
		n, ok := l.cfg.Tokens(e.Response)
		if !ok {
			n = int(math.Ceil(float64(len(e.Response)) / l.cfg.BytesPerToken))
		}
		x.TextTokens = trace.Some(n)
	}
	x.Recorded = recordedOf(e)
	l.note(e, &x)
	return l.rows.Row(&x)
}

// readPrompt hashes the prompt of an entry and returns the name of its session, "" to
// find it by the prompt.
func (l *requestLog) readPrompt(e *log.Entry, x *log.Exchange) (session string) {
	var err error
	if x.Call, err = l.read.ReadMembers(e.API, e.Body); err != nil {
		why := "whose prompt the tokenizer refuses"
		if err == log.ErrBatch {
			why = "with several prompts"
		}
		l.notes.count("requests " + why + ", without block ids")
		x.Call, _ = l.read.ReadMembers("", e.Body)
		e.Prompt = log.Unreadable
	} else if e.Prompt == log.HasPrompt {
		x.Blocks = l.read.Hash(x.Call)
	}
	field := l.cfg.SessionField
	if session = x.Call.Session; session == "" && field != "" {
		session = log.Lookup(e.Fields, field)
	}
	if session == "" && field == "" && x.Blocks == nil {
		return e.Session
	}
	return session
}

// recordedOf returns what the row tells about the response.
func recordedOf(e *log.Entry) log.Recorded {
	r := log.Recorded{API: e.Endpoint, Outcome: e.Outcome, Status: e.Status}
	if stream := string(e.Body["stream"]); stream == "true" || stream == "false" {
		streamed := stream == "true"
		r.Stream = &streamed
	}
	since := func(t time.Time) *float64 {
		if t.IsZero() || e.Begin.IsZero() || e.BeginCreated {
			return nil
		}
		ms := log.Milliseconds(t.Sub(e.Begin))
		return &ms
	}
	r.TTFT, r.E2EL = since(e.First), since(e.End)
	if e.Cached.Set {
		r.Cached = &e.Cached.Value
	}
	if e.Reasoning.Set {
		r.Reasoning = &e.Reasoning.Value
	}
	return r
}

// note counts what the entry of a row lacks.
func (l *requestLog) note(e *log.Entry, x *log.Exchange) {
	for _, lack := range []struct {
		is   bool
		text string
	}{
		{e.Prompt == log.NoPrompt, "requests without their prompt, and so without block ids"},
		{e.Prompt == log.Redacted, "requests whose prompt the gateway redacted, without block ids"},
		{e.Prompt == log.Cut, "requests whose prompt the gateway shortened, without block ids"},
		{!e.Input.Set && x.Blocks != nil, "input lengths that the log lacks, taken from the texts"},
		{!e.Input.Set && x.Blocks == nil, "input lengths that the log lacks, written as 0"},
		{!e.Output.Set && x.TextTokens.Set, "output lengths that the log lacks, taken from the texts"},
		{!e.Output.Set && !x.TextTokens.Set && e.Outcome == log.OK, "output lengths that the log lacks, written as 0"},
		{e.BeginCreated, "arrivals that are those of responses, in whole seconds: the log has no other time"},
		{!e.Begin.IsZero() && e.End.IsZero() && !e.BeginCreated, "requests without the end of their response, and so without E2EL and the pause after it"},
		{e.First.IsZero() && e.Outcome == log.OK, "responses without the time of their first token (TTFT)"},
		{e.Outcome != log.OK, "requests that failed, kept: their outcome says how"},
		{e.CacheHit, "responses from the cache of the gateway, kept: they did not reach the server"},
	} {
		if lack.is {
			l.notes.count(lack.text)
		}
	}
	if x.Blocks == nil || !e.Input.Set {
		return
	}
	if size, ok := x.Call.TextLength(); ok {
		l.texts.bytes += size
		l.texts.tokens += e.Input.Value
	}
}

// joinKey returns the hash of what joins an entry and its parts, 0 for nothing.
func joinKey(e *log.Entry) uint64 {
	if e.Joins == "" {
		return 0
	}
	return xxhash.Sum64String(e.Joins)
}

// joinParts finds the parts of each entry, in order of their times. Exporters write them
// before the entry, after it, or to another file.
func (l *requestLog) joinParts() {
	slices.SortStableFunc(l.parts, func(a, b spot[logged]) int {
		return cmp.Or(cmp.Compare(a.about.key, b.about.key), cmp.Compare(a.at, b.at))
	})
	joined := make([]bool, len(l.parts))
	answered := map[uint64]int{} // responses of a batch that have their request
	for i := range l.spots {
		s := &l.spots[i].about
		if s.key == 0 {
			continue
		}
		from, _ := slices.BinarySearchFunc(l.parts, s.key, func(p spot[logged], key uint64) int { return cmp.Compare(p.about.key, key) })
		if s.layout == log.Batch { // ids of requests may recur
			from += answered[s.key]
		}
		size := 0
		for s.from, s.to = from, from; s.to < len(l.parts) && l.parts[s.to].about.key == s.key && (s.layout != log.Batch || s.to == from); s.to++ {
			joined[s.to] = true
			size += int(l.parts[s.to].record.length)
		}
		switch {
		case s.layout == log.Batch && s.to == from:
			l.notes.count("requests of a batch without their response")
		case s.layout == log.Batch:
			l.spots[i].at = l.parts[from].at
			answered[s.key]++
		case size > MaxRow:
			l.notes.count("requests whose log records have more than 64 MiB, read without them")
			s.to = s.from
		}
	}
	for i, p := range l.parts {
		switch {
		case joined[i]:
		case p.about.layout == log.Batch:
			l.notes.count("responses of a batch without their request: the folder of both files has all")
			p.about.key = 0
			l.spots = append(l.spots, p)
		default:
			l.notes.count("log records with messages of no request left out: its span is missing, and has the times and lengths")
		}
	}
	l.sort()
}

// parse parses the entry at a spot from raw, its first part, and the other parts.
func (l *requestLog) parse(raw []byte, s logged) (*log.Entry, error) {
	if s.to > s.from {
		raw = bytes.Clone(raw) // before the next part is read
	}
	var parts [][]byte
	for _, p := range l.parts[s.from:s.to] {
		part, err := l.records.read(p.record)
		if err != nil {
			return nil, err
		}
		parts = append(parts, bytes.Clone(part))
	}
	e, err := log.Parse(s.layout, raw, parts...)
	if err != nil {
		return nil, trace.ReadError{Err: errors.New("the file changed while it was read")}
	}
	return e, nil
}

// textSize are prompts that are texts and whose tokens the log has, in bytes and tokens.
type textSize struct{ bytes, tokens int }

// The bytes of a token are measured with requests from all over a log.
const (
	measuredRequests = 2000
	leastMeasured    = 20 // fewer tell little
	// Sizes are in steps, and rounded down: logs of the same traffic then agree, and blocks
	// are rather too short than too long. A prefix that is a few bytes short of a block is not
	// shared at all, but of short blocks it only shares a few bytes too many.
	stepsPerByte = 4
	mostBytes    = 100
)

// median returns the median of the bytes per token of texts, by their tokens.
func median(texts []textSize) (bytes float64) {
	steps := func(s textSize) int { return min(max(s.bytes*stepsPerByte/s.tokens, 1), mostBytes*stepsPerByte) }
	slices.SortFunc(texts, func(a, b textSize) int { return steps(a) - steps(b) })
	tokens, below := 0, 0
	for _, s := range texts {
		tokens += s.tokens
	}
	for _, s := range texts {
		if below += s.tokens; 2*below >= tokens {
			return float64(steps(s)) / stepsPerByte
		}
	}
	return 0
}

// measureTexts sets the bytes per token to those that the log counts, if it has enough
// requests.
func (l *requestLog) measureTexts() {
	if !l.assumed {
		return
	}
	var texts []textSize
	for i := 0; i < len(l.spots); i += 1 + len(l.spots)/measuredRequests {
		if size := l.textOf(&l.spots[i]); size.tokens > 0 {
			texts = append(texts, size)
		}
	}
	if l.assumed = len(texts) >= leastMeasured; l.assumed {
		l.cfg.BytesPerToken = median(texts)
		l.read = log.NewReader(l.cfg)
	}
}

// textOf returns the size of a prompt that is a text and whose tokens the log has.
func (l *requestLog) textOf(s *spot[logged]) textSize {
	raw, err := l.records.read(s.record)
	if err != nil {
		return textSize{} // it is reported when the row is read
	}
	e, err := l.parse(raw, s.about)
	if err != nil || e.Prompt != log.HasPrompt || !e.Input.Set {
		return textSize{}
	}
	call, err := l.read.ReadMembers(e.API, e.Body)
	if err != nil {
		return textSize{}
	}
	bytes, ok := call.TextLength()
	if !ok {
		return textSize{}
	}
	return textSize{bytes, e.Input.Value}
}

// noteTextSize says how block ids of texts were made without a tokenizer.
func (l *requestLog) noteTextSize() {
	if l.cfg.Encoder != nil {
		return
	}
	text := fmt.Sprintf("block ids of texts are estimated: %.3g bytes per token", l.cfg.BytesPerToken)
	switch {
	case l.assumed:
		text += ", as the log counts; a tokenizer is more exact"
	case l.texts.tokens > 0:
		text += fmt.Sprintf("; the log counts %.3g: with that, or a tokenizer, their sharing is more exact", float64(l.texts.bytes)/float64(l.texts.tokens))
	}
	l.notes.say("%s", text)
}
