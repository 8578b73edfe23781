package openai

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/trace"
)

// retryAfter returns the wait that a Retry-After header, in seconds or a date,
// asks for: 0 if the date has passed, none if the header is absent or malformed.
func retryAfter(value string, now time.Time) trace.Opt[time.Duration] {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return trace.Some(time.Duration(seconds) * time.Second)
	}
	at, err := fasthttp.ParseHTTPDate([]byte(value))
	if err != nil {
		return trace.Opt[time.Duration]{}
	}
	return trace.Some(max(at.Sub(now), 0))
}
