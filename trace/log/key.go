package log

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"moontide/trace/atomicfile"
)

// Key is the secret from which block ids and names are made. Traces made with one key
// have equal ids for equal prompts. Without the key, nobody can confirm a guess of
// a prompt.
type Key [sha256.Size]byte

// RandomKey returns a key that nobody knows.
func RandomKey() (k Key) {
	rand.Read(k[:])
	return k
}

// OpenKey reads the key in a file. If there is no file, it makes one with a random key,
// which only its owner can read. A file that others can read is an error.
func OpenKey(path string) (Key, error) {
	k := RandomKey()
	f, err := atomicfile.New(path, 0o600)
	if errors.Is(err, fs.ErrExist) {
		k, err = readKey(path)
	} else if err == nil {
		_, err = fmt.Fprintf(f, "%x\n", k[:])
		if err = errors.Join(err, f.Sync()); err != nil {
			err = errors.Join(err, atomicfile.Remove(f))
		}
		f.Close()
	}
	if err != nil {
		return Key{}, fmt.Errorf("opening key: %w", err)
	}
	return k, nil
}

// readKey reads the hexadecimal digits in a key file.
func readKey(path string) (k Key, err error) {
	f, err := atomicfile.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return k, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return k, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return k, fmt.Errorf("%s can be read by others (mode %04o): make it private with chmod 600, or delete it to get a new key", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*sha256.Size))
	if err != nil {
		return k, err
	}
	digits, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(digits) != len(k) {
		return k, fmt.Errorf("%s is not a key: it must have %d hexadecimal digits", path, 2*len(k))
	}
	return Key(digits), nil
}

// Keys are keys for different purposes, so that ids and names of different kinds have
// nothing in common.
type Keys struct{ Blocks, Sessions, Models, Requests Key }

// Keys derives all of them.
func (k Key) Keys() Keys {
	return Keys{k.derive("blocks"), k.derive("sessions"), k.derive("models"), k.derive("requests")}
}

func (k Key) derive(purpose string) Key {
	x := newIDs(k)
	x.of([]byte(purpose))
	return x.sum
}

// Name returns what stands for a name in a trace: 53 bits as 13 or 14 hexadecimal digits,
// or "" for "". Any two of n names become the same with a probability of about n*n/2^54.
func (k Key) Name(of string) string {
	if of == "" {
		return ""
	}
	return fmt.Sprintf("%013x", newIDs(k).of([]byte(of)))
}

// OneIn reports whether a name is among one in n.
func (k Key) OneIn(name string, n int) bool {
	return newIDs(k).of([]byte("sample "+name))%uint64(n) == 0
}

// ids makes ids under a key. It is not safe for concurrent use.
type ids struct {
	mac hash.Hash
	sum [sha256.Size]byte // of the last
}

func newIDs(k Key) *ids { return &ids{mac: hmac.New(sha256.New, k[:])} }

// of returns the id of a content that has some parts: the 53 bits of its hash that every
// JSON reader keeps exactly.
func (x *ids) of(parts ...[]byte) uint64 {
	x.mac.Reset()
	for _, part := range parts {
		x.mac.Write(part)
	}
	x.mac.Sum(x.sum[:0])
	return binary.LittleEndian.Uint64(x.sum[:]) >> 11
}

// next returns the id of a block after those before it.
func (x *ids) next(block []byte) uint64 { return x.of(x.sum[:], block) }
