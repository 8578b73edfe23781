package sse

import (
	"fmt"
	"sync/atomic"
)

const (
	maxBudget = 64 << 20 // bytes
	// freeBuffer is what each Parser may buffer without charge, in bytes. Events
	// are smaller, so only unusual ones are counted.
	freeBuffer = 64 << 10
)

// ErrBudget is returned for an incomplete event if those of all Parsers exceed the
// [Budget] and this one its share.
var ErrBudget = fmt.Errorf("the incomplete events of all streams exceed %d MiB, and this stream has more than its share: check that the server ends events with an empty line", maxBudget>>20)

// Budget limits the incomplete events of many Parsers together to 64 MiB, not
// counting 64 KiB of each. When they exceed it, those that go on to grow beyond an
// equal share of it fail with [ErrBudget]; others are not affected. Parsers of one
// Budget may be used by different goroutines.
type Budget struct{ bytes, parsers atomic.Int64 }

// settle charges the Budget for the buffers as they are now.
func (p *Parser) settle() error {
	size := cap(p.line) + cap(p.data) + cap(p.comment)
	if size <= freeBuffer {
		size = 0
	}
	if p.Budget == nil || size == p.charged {
		return nil
	}
	grown := size > p.charged
	total, parsers := p.charge(size)
	if grown && total > maxBudget && int64(size) > maxBudget/parsers {
		return ErrBudget
	}
	return nil
}

// charge changes the charge of this Parser and returns that of all, and their
// number.
func (p *Parser) charge(size int) (total, parsers int64) {
	was := p.charged
	p.charged = size
	var joined int64
	switch {
	case was == 0 && size > 0:
		joined = 1
	case was > 0 && size == 0:
		joined = -1
	}
	return p.Budget.bytes.Add(int64(size - was)), max(p.Budget.parsers.Add(joined), 1)
}

// Release discards what is buffered. The Parser must not be used again.
func (p *Parser) Release() {
	if p.charged > 0 {
		p.charge(0)
	}
	*p = Parser{}
}
