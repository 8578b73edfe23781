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
	Ended   time.Time // its answer; zero before
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

// join adds a turn to a session, after the turn that it continues, if any.
func (t *Turn) join(of *session, before *Turn) {
	t.session, t.number = of, 1
	if before != nil {
		t.number = before.number + 1
		running := before.Ended.IsZero() || before.Ended.After(t.Arrived)
		switch {
		case running && !before.EndUnknown:
			t.after = []string{}
		case before != of.last:
			t.after = []string{before.ID}
		}
		if !running {
			t.delay = trace.Some(t.Arrived.Sub(before.Ended))
		}
	}
	of.last = t
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
	case b != nil && len(b.of.content) > 0:
		before = s.longest(b.of)
		s.remember(b.of, t)
	}
	if b != nil {
		b.of = hashed{}
	}
	of := &session{name: fresh}
	if before != nil {
		of = before.session
	}
	t.join(of, before)
}

// turn returns the latest turn with a hash, nil if there is none.
func (s *Sessions) turn(hash uint64) *Turn {
	if t := s.recent.turns[hash]; t != nil {
		return t
	}
	return s.older.turns[hash]
}

// hashed is a prompt and the ids of its full blocks, after the id of its scope.
type hashed struct {
	content    []byte
	blockBytes int
	ids        []uint64
}

// remember adds a prompt.
func (s *Sessions) remember(p hashed, t *Turn) {
	last := len(p.ids) - 1
	tail := p.content[last*p.blockBytes:]
	lengths := s.recent.tails[p.ids[last]]
	if at, known := slices.BinarySearch(lengths, len(tail)); !known {
		s.recent.tails[p.ids[last]] = slices.Insert(lengths, at, len(tail))
	}
	s.hashTails(p.ids[last], tail, []int{len(tail)}, func(end uint64) { s.recent.turns[end] = t })
}

// longest returns the turn with the longest prompt that a prompt continues, nil if there
// is none. It does not continue an equal one.
func (s *Sessions) longest(p hashed) (found *Turn) {
	for n := len(p.ids) - 1; n >= 0 && found == nil; n-- {
		tail := p.content[n*p.blockBytes:]
		lengths := slices.Concat(s.recent.tails[p.ids[n]], s.older.tails[p.ids[n]])
		slices.Sort(lengths)
		s.hashTails(p.ids[n], tail[:max(len(tail)-1, 0)], lengths, func(end uint64) {
			if t := s.turn(end); t != nil {
				found = t
			}
		})
	}
	return found
}

// hashTails calls see with the hash of the prompt that ends after each length of a tail.
func (s *Sessions) hashTails(block uint64, tail []byte, lengths []int, see func(uint64)) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(binary.LittleEndian.AppendUint64(nil, block))
	done := 0
	for _, length := range lengths {
		if length > len(tail) {
			return
		}
		h.Write(tail[done:length])
		done = length
		see(h.Sum64())
	}
}
