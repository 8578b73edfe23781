package analyze

import (
	"hash/maphash"

	"moontide/trace/block"
)

// names numbers session or request ids in order of first use. It keeps their hashes only:
// about 24 bytes each.
type names struct {
	seed  maphash.Seed
	table block.Table
}

func (n *names) number(name string) uint32 {
	if n.table.Len() == 0 {
		n.seed = maphash.MakeSeed()
	}
	number, _ := n.table.Number(maphash.String(n.seed, name))
	return number
}

// slot returns the value of a number, which it makes room for.
func slot[T any](l *block.List[T], number uint32) *T {
	for int(number) >= l.Len() {
		var zero T
		l.Add(zero)
	}
	return l.At(number)
}

// known are the numbers of a row's session and request id, or none, and whether it is a
// later turn of its session.
type known struct {
	session, request int32
	later            bool
}
