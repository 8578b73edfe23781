package openai

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// sessionHeader names the conversation of a request, so that a router can send
// its turns to where their prefix is cached.
const sessionHeader = "X-Session-ID"

// longestSession is the longest name that is sent as it is, in bytes.
const longestSession = 128

// sessionName is a session as it can stand in a header: names that cannot are
// replaced by a hash of theirs.
func sessionName(session string) string {
	odd := strings.ContainsFunc(session, func(c rune) bool { return c <= ' ' || c >= 0x7f })
	if odd || len(session) > longestSession {
		return "x" + strconv.FormatUint(xxhash.Sum64String(session), 16)
	}
	return session
}
