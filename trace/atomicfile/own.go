package atomicfile

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"regexp"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// texts match the beginnings of the texts that moontide writes, also compressed. A trace
// has no mark of its writer: any in the same format is taken for one of moontide's.
var texts = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^\{("timestamp": [\d.e+-]+, )?"input_length": \d`), // traces and records
		regexp.MustCompile(`^\{"moontide_model":`),
		regexp.MustCompile(`^\{\n  "format": "moontide `),                                                    // engines
		regexp.MustCompile(`^\{\n  "version": "[^"\n]*",\n  "command": (null|\[\n    "moontide")`),           // sets, older runs
		regexp.MustCompile(`^\{\n  "settings": \{\n    "version": \d`),                                       // runs
		regexp.MustCompile(`^\{\n  "version": "[^"\n]*",\n  "taken": "[^"\n]*",\n  "machine": `),             // calibrations
		regexp.MustCompile(`^\{\n  "backend": "openai-[^"\n]*",\n  "completed": (?s:.*)\n  "max_e2el_ms": `), // summaries
		regexp.MustCompile(`^\{\n  "run_id": "[^"\n]*",\n  "of": \d`),                                        // parts of runs
		regexp.MustCompile(`^<!DOCTYPE html>\n(?s:.*)<meta name="generator" content="moontide">`),            // pages
		regexp.MustCompile(`^<\?xml [^\n]*\?>\n<testsuites name="moontide"`),
	}
})

// PNGMark is a chunk of the pictures that moontide writes. It follows their first chunk.
const PNGMark = "tEXtSoftware\x00moontide"

// headSize is how many bytes tell whether moontide wrote a file.
const headSize = 512

// isOwn reports whether moontide wrote a file, or nobody wrote anything.
func isOwn(f *os.File) bool {
	in := bufio.NewReaderSize(f, headSize)
	head, err := in.Peek(headSize)
	if len(head) == 0 {
		return err == io.EOF
	}
	if bytes.HasPrefix(head, []byte("\x89PNG")) {
		return bytes.Contains(head, []byte(PNGMark))
	}
	var text io.Reader = in
	if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
		defer z.Close()
		if z.Reset(in) != nil {
			return false
		}
		text = z
	} else if z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20)); err == nil && bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) {
		defer z.Close()
		text = z
	}
	begins := make([]byte, headSize)
	n, _ := io.ReadFull(text, begins)
	for _, t := range texts() {
		if t.Match(begins[:n]) {
			return true
		}
	}
	return false
}

// isAny is for folders that only moontide writes to.
func isAny(*os.File) bool { return true }
