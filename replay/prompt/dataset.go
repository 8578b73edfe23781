package prompt

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

// ReadDataset yields the texts of a dataset for [NewCorpus]. It can be ranged over
// more than once. Files are streamed, and read no further than needed. path is
//
//   - a folder: all files named *.txt in it and below, in the order of their names;
//   - a file that begins with [ or {: conversations as in ShareGPT, an array of
//     objects or one object after the other, with members
//     "conversations": [{"value": "..."}];
//   - any other file: plain text.
//
// The iteration ends at the first error. A dataset without text is an error.
func ReadDataset(path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		some := false
		err := readDataset(path, func(text string) bool {
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

// errEnough stops reading when the consumer stops.
var errEnough = errors.New("enough")

func readDataset(path string, yield func(string) bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return readBooks(path, yield)
	}
	return readFile(path, yield)
}

func readBooks(dir string, yield func(string) bool) error {
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
		return readBook(f, yield)
	})
	if err == nil && books == 0 {
		err = fmt.Errorf("%s has no files named *.txt", dir)
	}
	return err
}

func readFile(path string, yield func(string) bool) error {
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
	mark := []byte("\uFEFF")
	text := bytes.TrimLeft(bytes.TrimPrefix(head, mark), " \t\r\n")
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		if bytes.HasPrefix(head, mark) {
			in.Discard(len(mark))
		}
		if err := readConversations(in, text[0] == '[', yield); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	return readBook(in, yield)
}

const bookPart = 64 << 10 // bytes of plain text per part

// readBook yields plain text in parts that end between words.
func readBook(in io.Reader, yield func(string) bool) error {
	buf := make([]byte, bookPart)
	kept := 0 // bytes of an unfinished word
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
		if end > 0 && !yield(string(buf[:end])) {
			return errEnough
		}
		if ended {
			return nil
		}
		kept = copy(buf, buf[end:n])
	}
}

const maxConversation = 16 << 20 // bytes

// conversation is one element of a ShareGPT file.
type conversation struct {
	Conversations []struct {
		Value string `json:"value"`
	} `json:"conversations"`
}

// readConversations reads an array of conversations, or one after the other.
func readConversations(in io.Reader, array bool, yield func(string) bool) error {
	source := &budget{in: in, left: maxConversation}
	decoder := json.NewDecoder(source)
	if array {
		if _, err := decoder.Token(); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		source.left = maxConversation
		if array && !decoder.More() {
			if _, err := decoder.Token(); err != nil {
				return fmt.Errorf("after conversation %d: %w", n-1, err)
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
			if turn.Value != "" && !yield(turn.Value) {
				return errEnough
			}
		}
	}
}

// budget is a reader that fails after more than left bytes.
type budget struct {
	in   io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("longer than %d bytes", maxConversation)
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
