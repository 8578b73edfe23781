package openai

import (
	"io"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"": none, "0": 0, "7": 7 * time.Second, " 120 ": 2 * time.Minute, "-5": none, "1.5": none, "soon": none,
		"99999999999999999999":          none,
		"4294967295":                    4294967295 * time.Second,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:30 GMT": 0,
		"Sunday":                        none,
	} {
		if got := retryAfter(value, now); got.Set != (want != none) || got.Set && got.Value != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestRetryAfterOfRefusalsOnly(t *testing.T) {
	for status, want := range map[string]string{"429 Too Many Requests": "7", "503 Service Unavailable": "7", "200 OK": "", "500 Oops": ""} {
		a := fed([][]byte{[]byte("HTTP/1.1 " + status + "\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n")}, io.EOF)
		if a.retryAfter != want {
			t.Errorf("%s: %q, want %q", status, a.retryAfter, want)
		}
	}
}
