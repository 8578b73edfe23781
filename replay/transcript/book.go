package transcript

import (
	"fmt"
	"sync"

	"moontide/trace"
)

// Book keeps the prompts and answers of a run that later prompts may continue, and
// forgets them when no row is left that waits for them. A is what is kept of an
// answer. A Book is safe for concurrent use.
type Book[A any] struct {
	graph     *trace.Graph
	blockSize int
	most      int64

	mu   sync.Mutex
	rows map[int]*Entry[A]
	kept int64
}

// Entry is a row of a [Book].
type Entry[A any] struct {
	Prompt *Prompt
	Turn   Turn      // how the prompt relates to that of Base
	Base   *Entry[A] // what the prompt continues, or nil

	// Set by End:
	Generated Generated
	Answer    A

	ended   bool
	size    int64
	waiting int // rows that wait for this one and have not ended
	kept    int // entries of which this is the Base
}

// NewBook returns a Book for the rows of a graph. The sizes of its answers add up to most
// at most.
func NewBook[A any](graph *trace.Graph, blockSize int, most int64) *Book[A] {
	return &Book[A]{graph: graph, blockSize: blockSize, most: most, rows: map[int]*Entry[A]{}}
}

// Open returns the entry of a row whose prompt is needed now: the rows that it waits
// for have ended. Those that are not in the book are not continued. Open may be called
// again until the row ends. Entries do not change until End.
func (b *Book[A]) Open(r trace.Request, row int) *Entry[A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.rows[row]; e != nil {
		return e
	}
	var waited []*Prompt
	for _, before := range b.graph.Before(row) {
		if e := b.rows[int(before)]; e != nil && e.ended {
			waited = append(waited, e.Prompt)
		}
	}
	e := &Entry[A]{waiting: b.graph.Waiting(row)}
	if base := Base(r, waited); base != nil {
		e.Base = b.rows[base.Row]
		e.Base.kept++
		e.Prompt, e.Turn = base.Continue(e.Base.Generated, r, row)
	} else {
		e.Prompt = New(r, row, b.blockSize)
	}
	b.rows[row] = e
	return e
}

// TooManyError reports answers that take more memory than a [Book] may use.
type TooManyError struct{ Size, Kept, Most int64 }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the answer takes %d bytes, and those of other turns in progress %d: more than the limit of %d", e.Size, e.Kept, e.Most)
}

// End stores the answer to an opened row and its size, in bytes. It fails
// with a [*TooManyError] if there are too many answers; the row is then dropped.
func (b *Book[A]) End(row int, g Generated, answer A, size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[row]
	if e == nil || e.ended {
		return nil
	}
	b.release(row)
	switch {
	case e.waiting == 0:
		b.forget(row, e)
		return nil
	case b.kept+size > b.most:
		b.forget(row, e)
		return &TooManyError{size, b.kept, b.most}
	}
	e.Generated, e.Answer, e.ended, e.size = g, answer, true, size
	b.kept += size
	return nil
}

// Drop forgets a row that no other continues: it failed, or was not sent. It is called
// once for a row, instead of End.
func (b *Book[A]) Drop(row int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.rows[row]
	if e != nil && e.ended {
		return
	}
	b.release(row)
	if e != nil {
		b.forget(row, e)
	}
}

// release forgets the rows that only this one waited for.
func (b *Book[A]) release(row int) {
	for _, before := range b.graph.Before(row) {
		if e := b.rows[int(before)]; e != nil {
			if e.waiting--; e.waiting == 0 && e.ended {
				b.forget(int(before), e)
			}
		}
	}
}

// forget removes a row. Its answer stays while others continue it.
func (b *Book[A]) forget(row int, e *Entry[A]) {
	delete(b.rows, row)
	e.waiting = 0
	for ; e != nil && e.waiting == 0 && e.kept == 0; e = e.Base {
		b.kept -= e.size
		e.size = 0
		if e.Base != nil {
			e.Base.kept--
		}
	}
}

// Find returns the entry of a row whose prompt or answer the prompt of e may contain: e
// or one that it continues. It returns nil if there is none.
func (e *Entry[A]) Find(row int) *Entry[A] {
	for ; e != nil && e.Prompt.Row != row; e = e.Base {
	}
	return e
}

// Len returns the number of rows in the book.
func (b *Book[A]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.rows)
}

// Kept returns the total size of the answers in the book.
func (b *Book[A]) Kept() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}
