package openai

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// retryAfter returns the wait that a Retry-After header, in seconds or a date,
// asks for. It is 0 if the header is malformed or the date has passed.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := fasthttp.ParseHTTPDate([]byte(value))
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
