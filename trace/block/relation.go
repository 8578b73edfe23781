package block

// Relation is how the prompt of a turn relates to that of the turn before.
type Relation uint8

// The relations.
const (
	// Extends: it begins with the whole prompt before, and is longer.
	Extends Relation = iota
	// Shortened: it is not longer than the prompt before, as after a compaction of
	// the context.
	Shortened
	// Rewritten: it is longer but begins differently.
	Rewritten
	// Unknown: the trace has no block ids for one of them.
	Unknown
)

// RelationOf returns how a prompt of isl tokens relates to one of before tokens. Block ids
// identify their whole prefix, so one comparison decides: same compares the two blocks at
// a place, from 0, and reports whether both prompts have one.
func RelationOf(isl, before, blockSize int, same func(place int) (same, known bool)) Relation {
	full := before / blockSize
	switch {
	case isl <= before:
		return Shortened
	case full == 0:
		return Extends
	}
	equal, known := same(full - 1)
	switch {
	case !known:
		return Unknown
	case !equal:
		return Rewritten
	}
	return Extends
}

// Relations counts later turns by their relation to the turn before.
type Relations struct {
	Extend    int `json:"extend"`
	Shortened int `json:"shortened"`
	Rewritten int `json:"rewritten"`
	Unknown   int `json:"unknown"`
}

// Add counts a turn.
func (c *Relations) Add(r Relation) {
	*[...]*int{Extends: &c.Extend, Shortened: &c.Shortened, Rewritten: &c.Rewritten, Unknown: &c.Unknown}[r]++
}

// Turns returns the number of turns.
func (c Relations) Turns() int { return c.Extend + c.Shortened + c.Rewritten + c.Unknown }
