// Package dataset reads text that people wrote, for prompts that mean
// something: conversations in the format of ShareGPT, or books.
//
// [Texts] tells from what it finds at a path which of the two it is. Files are
// read as a stream, and no further than the texts are asked for: those of
// ShareGPT have hundreds of megabytes.
package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Texts yields the texts of a dataset, none of them larger than a megabyte or
// so. It can be ranged over more than once. What is at path is
//
//   - a folder: the books in it, which are all files named *.txt there and
//     below, in the order of their names;
//   - a file that begins with [ or {: conversations, an array of objects or one
//     object behind the other, with members "conversations": [{"value": "..."}];
//   - any other file: one book, of plain text.
//
// An error ends the texts. That there are none is one, too.
func Texts(path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		some := false
		err := read(path, func(text string) bool {
			some = true
			return yield(text, nil)
		})
		switch {
		case errors.Is(err, errEnough):
		case err != nil:
			yield("", fmt.Errorf("reading dataset: %w", err))
		case !some:
			yield("", fmt.Errorf("reading dataset: %s has no text", path))
		}
	}
}

// errEnough is that no more texts are asked for.
var errEnough = errors.New("enough")

func read(path string, give func(string) bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return readBooks(path, give)
	}
	return readFile(path, give)
}

func readBooks(dir string, give func(string) bool) error {
	books := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasSuffix(path, ".txt") {
			return err
		}
		books++
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return readBook(f, give)
	})
	if err == nil && books == 0 {
		err = fmt.Errorf("%s has no files named *.txt", dir)
	}
	return err
}

func readFile(path string, give func(string) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, bookPart)
	head, err := in.Peek(256)
	if err != nil && err != io.EOF {
		return err
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\uFEFF")), " \t\r\n")
	if len(head) > 0 && (head[0] == '[' || head[0] == '{') {
		if err := readConversations(in, give); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	return readBook(in, give)
}

// bookPart is how much of a book is one text, in bytes.
const bookPart = 64 << 10

// readBook gives a book in parts that end between words.
func readBook(in io.Reader, give func(string) bool) error {
	buf := make([]byte, bookPart)
	kept := 0 // the beginning of a word
	for {
		n, err := io.ReadFull(in, buf[kept:])
		n += kept
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !ended {
			return err
		}
		end := n
		if cut := bytes.LastIndexAny(buf[:n], " \t\r\n"); !ended && cut > 0 {
			end = cut
		}
		if end > 0 && !give(string(buf[:end])) {
			return errEnough
		}
		if ended {
			return nil
		}
		kept = copy(buf, buf[end:n])
	}
}

// maxConversation bounds one conversation in bytes.
const maxConversation = 16 << 20

// conversation is what is looked at of an element of a file.
type conversation struct {
	Conversations []struct {
		Value string `json:"value"`
	} `json:"conversations"`
}

func readConversations(in *bufio.Reader, give func(string) bool) error {
	if mark, _, err := in.ReadRune(); err == nil && mark != '\uFEFF' {
		in.UnreadRune()
	}
	source := &budget{in: in}
	decoder := json.NewDecoder(source)
	array, err := opensArray(in)
	if err != nil {
		return err
	}
	source.left = maxConversation
	if array {
		if _, err := decoder.Token(); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		source.left = maxConversation
		if array && !decoder.More() {
			if _, err := decoder.Token(); err != nil {
				return fmt.Errorf("behind conversation %d: %w", n-1, err)
			}
			return nil
		}
		var c conversation
		err := decoder.Decode(&c)
		switch {
		case err == io.EOF && !array:
			return nil
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
			fallthrough
		case err != nil:
			return fmt.Errorf("conversation %d: %w", n, err)
		}
		for _, turn := range c.Conversations {
			if turn.Value != "" && !give(turn.Value) {
				return errEnough
			}
		}
	}
}

// opensArray goes to the first byte that is no blank, and reports whether it
// opens an array.
func opensArray(in *bufio.Reader) (bool, error) {
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return false, err
		case strings.IndexByte(" \t\r\n", b) < 0:
			return b == '[', in.UnreadByte()
		}
	}
}

// budget is a reader that fails when more is read than is left.
type budget struct {
	in   io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it has more than %d bytes", maxConversation)
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
