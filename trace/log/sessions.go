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

// Session returns the name of the session that the turn has joined.
func (t *Turn) Session() string { return t.session.name }

// session is a conversation.
type session struct {
	name string
	last *Turn
}

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
// continues an earlier one that it begins with. It knows prompts by hashes with a seed
// that is made anew for each. It remembers a number of prompts and names, and at least the
// latest half of them. It must be locked by its user.
type Sessions struct {
	most          int
	seed          maphash.Seed
	recent, older remembered
}

// remembered are sessions by their names, and prompts.
type remembered struct {
	named map[string]*session
	ends  map[uint64]*Turn // by the hash of a whole prompt
	tails map[uint64][]int // ascending, by the id of the last full block: bytes that prompts have after it
}

func newRemembered() remembered {
	return remembered{named: map[string]*session{}, ends: map[uint64]*Turn{}, tails: map[uint64][]int{}}
}

// NewSessions returns sessions that remember a number of prompts and names.
func NewSessions(most int) *Sessions {
	return &Sessions{most: most, seed: maphash.MakeSeed(), recent: newRemembered(), older: newRemembered()}
}

// Join adds a turn to the session with a name, or else to that of the prompt which its
// own one continues, or else to a new session named fresh. Turns join in order of their
// arrival. b, which may be nil, holds the prompt no longer.
func (s *Sessions) Join(t *Turn, name string, b *Blocks, fresh string) {
	if 2*(len(s.recent.named)+len(s.recent.ends)) >= s.most {
		s.recent, s.older = newRemembered(), s.recent
	}
	switch {
	case name != "":
		of := s.recent.named[name]
		if of == nil {
			of = s.older.named[name]
		}
		if of == nil {
			of = &session{name: name}
		}
		s.recent.named[name] = of
		t.join(of, of.last)
	case b != nil && len(b.of.content) > 0:
		s.byPrompt(b.of, fresh, t)
	default:
		t.join(&session{name: fresh}, nil)
	}
	if b != nil {
		b.of = hashed{}
	}
}

// byPrompt adds a turn to the session of the longest prompt that its own one continues,
// or else to a new one with a name.
func (s *Sessions) byPrompt(p hashed, name string, t *Turn) {
	if before := s.longest(p); before != nil {
		t.join(before.session, before)
	} else {
		t.join(&session{name: name}, nil)
	}
	last := len(p.ids) - 1
	block, tail := p.ids[last], p.content[last*p.blockBytes:]
	s.hashTails(block, tail, []int{len(tail)}, func(end uint64) { s.recent.ends[end] = t })
	lengths := s.recent.tails[block]
	if at, known := slices.BinarySearch(lengths, len(tail)); !known {
		s.recent.tails[block] = slices.Insert(lengths, at, len(tail))
	}
}

// hashed is a prompt and the ids of its full blocks, after the id of its scope.
type hashed struct {
	content    []byte
	blockBytes int
	ids        []uint64
}

// longest returns the turn with the longest prompt that a prompt continues, nil if there
// is none. It does not continue an equal one.
func (s *Sessions) longest(p hashed) (found *Turn) {
	for n := len(p.ids) - 1; n >= 0 && found == nil; n-- {
		tail := p.content[n*p.blockBytes:]
		tail = tail[:max(len(tail)-1, 0)]
		longest := -1
		for _, of := range []*remembered{&s.recent, &s.older} {
			lengths := of.tails[p.ids[n]]
			i := 0
			s.hashTails(p.ids[n], tail, lengths, func(end uint64) {
				if t := of.ends[end]; t != nil && lengths[i] > longest {
					found, longest = t, lengths[i]
				}
				i++
			})
		}
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
