package capture

// gap is a reason why a row is missing, or lacks its block ids.
type gap string

const (
	noMemory   gap = "memory"     // Config.Memory is used up
	tooLarge   gap = "too_large"  // a body above Config.MaxBody
	incomplete gap = "incomplete" // a body that the client did not send to its end
	encoded    gap = "encoding"   // a Content-Encoding other than gzip
	unreadable gap = "unreadable" // not the body of a request
	batch      gap = "batch"      // several prompts in one request
	failed     gap = "failed"     // the encoder or the capture itself failed
	slow       gap = "slow"       // rows come faster than they can be written
	writing    gap = "writing"    // the file cannot be written
	outside    gap = "sample"     // the session is not in the sample
)

// reasons explains gaps.
var reasons = map[gap]string{
	noMemory:   "too many bytes were held at a time",
	tooLarge:   "a body was too large",
	incomplete: "the client did not send the whole body",
	encoded:    "the body has a Content-Encoding other than gzip",
	unreadable: "the body is not that of a request",
	batch:      "a request has several prompts",
	failed:     "the tokenizer or the capture failed",
	slow:       "rows came faster than they could be written",
	writing:    "the file could not be written",
}

// Reason explains a key of Counts.LostRows or Counts.NoBlocks.
func Reason(key string) string { return reasons[gap(key)] }
