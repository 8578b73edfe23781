package log

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"moontide/trace"
)

// Turn is a request of a session.
type Turn struct {
	ID      string // request_id
	Arrived time.Time
	Ended   time.Time // its response; zero before
	// EndUnknown says that Ended is zero because nobody knows it.
	EndUnknown bool

	session *session
	number  int // from 1
	// What the turn waits for: the pause since the end of the turn before it, and that
	// turn's id if it is not the latest of the session, or an empty list for nothing.
	delay trace.Opt[time.Duration]
	after []string
}

// session is a conversation.
type session struct {
	name string
	last *Turn
}

// Session returns the name of the session that the turn has joined.
func (t *Turn) Session() string { return t.session.name }

// follow adds a turn to the session of the one that it continues, or else to a new one.
func (t *Turn) follow(before *Turn, fresh string) {
	if before == nil {
		t.session, t.number = &session{fresh, t}, 1
		return
	}
	t.session, t.number = before.session, before.number+1
	running := before.Ended.IsZero() || before.Ended.After(t.Arrived)
	switch {
	case running && !before.EndUnknown:
		t.after = []string{}
	case before != t.session.last:
		t.after = []string{before.ID}
	}
	if !running {
		t.delay = trace.Some(t.Arrived.Sub(before.Ended))
	}
	t.session.last = t
}

// Sessions finds the session of each request: by its name, or else by its prompt, which
// continues an earlier one that it begins with. It knows names and prompts by hashes with a
// seed that is made anew for each. It remembers a number of them, and at least the latest
// half. It must be locked by its user.
type Sessions struct {
	most          int
	seed          maphash.Seed
	recent, older remembered
}

// remembered are turns, and where their prompts end.
type remembered struct {
	turns map[uint64]*Turn // the latest by the hash of its session's name, or of its prompt
	tails map[uint64][]int // ascending, by the id of the last full block: bytes that prompts have after it
}

func newRemembered() remembered {
	return remembered{map[uint64]*Turn{}, map[uint64][]int{}}
}

// NewSessions returns sessions that remember a number of prompts and names.
func NewSessions(most int) *Sessions {
	return &Sessions{most, maphash.MakeSeed(), newRemembered(), newRemembered()}
}

// Join adds a turn to the session with a name, or else to that of the prompt which its
// own one continues, or else to a new session named fresh. Turns join in order of their
// arrival. b, which may be nil, holds the prompt no longer.
func (s *Sessions) Join(t *Turn, name string, b *Blocks, fresh string) {
	if 2*len(s.recent.turns) >= s.most {
		s.recent, s.older = newRemembered(), s.recent
	}
	var before *Turn
	switch {
	case name != "":
		hash := maphash.String(s.seed, name)
		if before = s.turn(hash); before != nil {
			before = before.session.last
		}
		s.recent.turns[hash], fresh = t, name
	case b != nil && len(b.content) > 0:
		before = s.longest(b)
		s.remember(b, t)
	}
	if b != nil {
		b.content = nil
	}
	t.follow(before, fresh)
}

// turn returns the latest turn with a hash, nil if there is none.
func (s *Sessions) turn(hash uint64) *Turn {
	if t := s.recent.turns[hash]; t != nil {
		return t
	}
	return s.older.turns[hash]
}

// remember adds a prompt.
func (s *Sessions) remember(b *Blocks, t *Turn) {
	full := len(b.content) / b.blockBytes
	tail := len(b.content) % b.blockBytes
	lengths := s.recent.tails[b.ids[full]]
	if at, known := slices.BinarySearch(lengths, tail); !known {
		s.recent.tails[b.ids[full]] = slices.Insert(lengths, at, tail)
	}
	_, end := s.within(b, full, []int{tail})
	s.recent.turns[end] = t
}

// longest returns the turn with the longest prompt that a prompt continues, nil if there
// is none. It does not continue an equal one.
func (s *Sessions) longest(b *Blocks) (found *Turn) {
	for n := len(b.content) / b.blockBytes; n >= 0 && found == nil; n-- {
		lengths := slices.Concat(s.recent.tails[b.ids[n]], s.older.tails[b.ids[n]])
		slices.Sort(lengths)
		shorter, _ := slices.BinarySearch(lengths, len(b.content)-n*b.blockBytes)
		found, _ = s.within(b, n, lengths[:shorter])
	}
	return found
}

// within returns the turn with the longest of the prompts that end some bytes after n blocks
// of a prompt, nil if there is none, and the hash of the longest of these ends.
func (s *Sessions) within(b *Blocks, n int, lengths []int) (found *Turn, end uint64) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(binary.LittleEndian.AppendUint64(nil, b.ids[n]))
	tail, done := b.content[n*b.blockBytes:], 0
	for _, length := range lengths {
		h.Write(tail[done:length])
		done, end = length, h.Sum64()
		if t := s.turn(end); t != nil {
			found = t
		}
	}
	return found, end
}
