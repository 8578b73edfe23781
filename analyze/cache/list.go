package cache

import "math"

// none is no item of a list.
const none = math.MaxUint32

// list is a queue of items, which are numbers, from the oldest to the newest.
// The items' neighbours are kept in links, which lists may share as long as an
// item is in one of them only.
type list struct{ oldest, newest uint32 }

// links are the neighbours of each item.
type links []struct{ older, newer uint32 }

// push appends an item that is in no list.
func (l links) push(to *list, item uint32) {
	l[item].older, l[item].newer = to.newest, none
	if to.newest == none {
		to.oldest = item
	} else {
		l[to.newest].newer = item
	}
	to.newest = item
}

// remove takes an item out of the list that it is in.
func (l links) remove(from *list, item uint32) {
	older, newer := l[item].older, l[item].newer
	if older == none {
		from.oldest = newer
	} else {
		l[older].newer = newer
	}
	if newer == none {
		from.newest = older
	} else {
		l[newer].older = older
	}
}
