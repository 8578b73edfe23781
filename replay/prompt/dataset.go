package prompt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// ReadDataset yields the texts of a dataset for [NewCorpus]. It can be ranged over
// more than once. The file is streamed, and read no further than needed. If it begins
// with [ or {, it has conversations as in ShareGPT: an array of objects or one object
// after the other, with members "conversations": [{"value": "..."}]. Any other file is
// plain text.
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
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, textPart)
	head, err := in.Peek(256)
	if err != nil && err != io.EOF {
		return err
	}
	mark := []byte("\uFEFF")
	text := bytes.TrimLeft(bytes.TrimPrefix(head, mark), " \t\r\n")
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return readText(in, yield)
	}
	if bytes.HasPrefix(head, mark) {
		in.Discard(len(mark))
	}
	if err := readConversations(in, text[0] == '[', yield); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

const textPart = 64 << 10 // bytes of plain text per part

// readText yields plain text in parts that end between words.
func readText(in io.Reader, yield func(string) bool) error {
	buf := make([]byte, textPart)
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
	source := &io.LimitedReader{R: in, N: maxConversation}
	decoder := json.NewDecoder(source)
	if array {
		if _, err := decoder.Token(); err != nil {
			return err
		}
	}
	n := 0
	for ; decoder.More(); source.N = maxConversation {
		n++
		var c conversation
		if err := decoder.Decode(&c); err != nil {
			if source.N == 0 {
				err = fmt.Errorf("longer than %d bytes", maxConversation)
			}
			return fmt.Errorf("conversation %d: %w", n, err)
		}
		for _, turn := range c.Conversations {
			if turn.Value != "" && !yield(turn.Value) {
				return errEnough
			}
		}
	}
	if _, err := decoder.Token(); err != nil && (array || err != io.EOF) {
		return fmt.Errorf("after conversation %d: %w", n, err)
	}
	return nil
}
