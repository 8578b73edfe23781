package tokenizer

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	stdhash "hash"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Memory encodes texts as its tokenizer does, but most of those that it has seen before
// ten times as fast. Clients of chats send the whole conversation again with each turn.
//
// It keeps no text. A text is cut into pieces, and the digest of a piece, under a random
// key that never leaves the process, is in two halves: one is the name under which its
// tokens are kept, and the other the key with which they are encrypted, which is not kept.
// So only who has a piece can read its tokens.
//
// It is safe for concurrent use.
type Memory struct {
	of          *Tokenizer
	most        int  // bytes
	size, least int  // pieceSize and leastPiece
	cuts        bool // a text may have several pieces

	digests sync.Pool // of *digester

	mu sync.Mutex // of the rest
	// Pieces that were used lately, and those before them, which are forgotten when the
	// former have half of the bytes.
	recent, older map[pieceName][]byte
	held          int // bytes of recent
}

// DefaultMemory is enough for the tokens of 60 MB of text.
const DefaultMemory = 64 << 20

type pieceName [sha256.Size / 2]byte

const (
	// Pieces end at the first place from here on, in bytes, where the tokenizer surely
	// splits, so that texts with one beginning have pieces in common.
	pieceSize = 2 << 10
	// Shorter pieces are not kept, for they could be found by trying.
	leastPiece = 128
	// pieceCost is about what a map takes for a piece beside its tokens, in bytes.
	pieceCost = 96
)

// NewMemory returns a memory of up to a number of bytes.
func NewMemory(of *Tokenizer, most int) *Memory {
	var key [sha256.Size]byte
	rand.Read(key[:])
	return &Memory{
		of: of, most: most, size: pieceSize, least: leastPiece, cuts: of.splitsBeforeSpaces(),
		recent: map[pieceName][]byte{}, older: map[pieceName][]byte{},
		digests: sync.Pool{New: func() any { return &digester{mac: hmac.New(sha256.New, key[:])} }},
	}
}

// Append appends the tokens of text to dst; see [Tokenizer.Append].
func (m *Memory) Append(dst []uint32, text string) (ids []uint32, err error) {
	if !utf8.ValidString(text) { // a cut might be within what one U+FFFD replaces
		return m.of.Append(dst, text)
	}
	for ids = dst; len(text) > 0 && err == nil; {
		n := m.piece(text)
		if n < m.least {
			ids, err = m.of.Append(ids, text[:n])
		} else {
			ids, err = m.appendPiece(ids, text[:n])
		}
		text = text[n:]
	}
	return ids, err
}

// piece returns the length of the first piece of a text. It ends before a space between
// characters that are none.
func (m *Memory) piece(text string) int {
	for at := m.size; m.cuts && at < len(text)-1; at++ {
		n := strings.IndexByte(text[at:], ' ')
		if n < 0 {
			break
		}
		at += n
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, size := utf8.DecodeRuneInString(text[at+1:])
		if size > 0 && !unicode.IsSpace(before) && !unicode.IsSpace(after) {
			return at
		}
	}
	return len(text)
}

// appendPiece appends the tokens of a piece that may have been seen.
func (m *Memory) appendPiece(dst []uint32, text string) ([]uint32, error) {
	name, stream := m.digest(text)
	if sealed, ok := m.find(name); ok {
		open := make([]byte, len(sealed))
		stream.XORKeyStream(open, sealed)
		for at := 0; at < len(open); at += 4 {
			dst = append(dst, binary.LittleEndian.Uint32(open[at:]))
		}
		clear(open)
		return dst, nil
	}
	known := len(dst)
	dst, err := m.of.Append(dst, text)
	if err != nil {
		return dst, err
	}
	sealed := make([]byte, 0, 4*(len(dst)-known))
	for _, id := range dst[known:] {
		sealed = binary.LittleEndian.AppendUint32(sealed, id)
	}
	stream.XORKeyStream(sealed, sealed)
	m.keep(name, sealed)
	return dst, nil
}

// digest returns the name of a piece, and what encrypts its tokens.
func (m *Memory) digest(text string) (name pieceName, stream cipher.Stream) {
	d := m.digests.Get().(*digester)
	defer m.digests.Put(d)
	sum := d.of(text)
	defer clear(sum)
	block, err := aes.NewCipher(sum[len(name):])
	if err != nil {
		panic(err) // a key of 16 bytes is valid
	}
	var zero [aes.BlockSize]byte // no other tokens are encrypted with this key
	return pieceName(sum), cipher.NewCTR(block, zero[:])
}

// digester makes digests of texts. It holds nothing of them afterwards.
type digester struct {
	mac  stdhash.Hash
	part [1 << 10]byte
	sum  [sha256.Size]byte
}

// of returns the digest of a text, until the next one.
func (d *digester) of(text string) []byte {
	for len(text) > 0 {
		n := copy(d.part[:], text)
		d.mac.Write(d.part[:n])
		text = text[n:]
	}
	clear(d.part[:])
	d.mac.Sum(d.sum[:0])
	d.mac.Reset()
	return d.sum[:]
}

// find returns the encrypted tokens of a piece.
func (m *Memory) find(name pieceName) (sealed []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sealed, ok = m.recent[name]; ok {
		return sealed, true
	}
	if sealed, ok = m.older[name]; ok {
		m.put(name, sealed)
	}
	return sealed, ok
}

// keep keeps the encrypted tokens of a piece.
func (m *Memory) keep(name pieceName, sealed []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.recent[name]; !ok { // or another goroutine was first
		m.put(name, sealed)
	}
}

// put adds a piece to the recent ones. m.mu must be held.
func (m *Memory) put(name pieceName, sealed []byte) {
	size := len(sealed) + pieceCost
	if size > m.most/2 {
		return
	}
	if m.held+size > m.most/2 {
		m.older, m.recent, m.held = m.recent, map[pieceName][]byte{}, 0
	}
	m.recent[name] = sealed
	m.held += size
}
