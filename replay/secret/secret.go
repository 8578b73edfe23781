// Package secret is the one place that masks what may be secret: in records, reports and
// messages.
//
//	secret.URL("https://u:p@h/sk-1234567890?key=k") // https://***8e3d56ac@h/***5fc1d3b2?key=***...
//	secret.Text("salt of sk-1234567890")            // salt of ***5fc1d3b2
//
// A mask has the first 32 bits of the text's SHA-256, so that equal texts have equal
// masks.
package secret

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hidden begins every mask.
const hidden = "***"

// Mask returns the mask of a text. A mask stays what it is.
func Mask(text string) string {
	if aMask.MatchString(text) { // as read from the folder of a run
		return text
	}
	return fmt.Sprintf("%s%.4x", hidden, sha256.Sum256([]byte(text)))
}

var aMask = regexp.MustCompile(`^\*\*\*[0-9a-f]{8}$`)

// Masked reports whether a text has a mask.
func Masked(text string) bool { return strings.Contains(text, hidden) }

// keys are keys and tokens whose beginning tells what they are, as of model providers,
// clouds and code hosts, and JSON web tokens. They begin a word: model-xai-large is none.
var keys = regexp.MustCompile(`(^|[^\w.-])(((sk|gsk|csk|xai|pplx|nvapi|glpat|xox[a-z])-|(hf|gh[a-z]|github_pat|r8|fw|rpa)_|dapi|AKIA|ASIA|AIza)[\w-]{8,}|eyJ[\w-]{8,}(\.[\w-]+)*)`)

// credentials are the user and the password in a URL.
var credentials = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#\s"']+@`)

// Message masks keys and the credentials of URLs in any text.
func Message(text string) string {
	if strings.Contains(text, "://") {
		text = credentials.ReplaceAllStringFunc(text, func(found string) string {
			scheme, user, _ := strings.Cut(found, "://")
			if user = strings.TrimSuffix(user, "@"); !strings.HasPrefix(user, hidden) {
				user = Mask(user)
			}
			return scheme + "://" + user + "@"
		})
	}
	return keys.ReplaceAllStringFunc(text, func(found string) string {
		before := keys.FindStringSubmatch(found)[1]
		if !strings.ContainsAny(found, "0123456789") {
			return found
		}
		return before + Mask(found[len(before):])
	})
}

// random finds words without separators that are long enough to be random.
var random = regexp.MustCompile(`[A-Za-z0-9_+=%~-]*[A-Za-z0-9]{16,}[A-Za-z0-9_+=%~-]*`)

// Text masks what Message does, and words that look random: with 16 letters and digits in
// a row, several of them digits.
func Text(text string) string {
	return random.ReplaceAllStringFunc(Message(text), func(word string) string {
		digits := strings.Count(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0'
			}
			return r
		}, word), "0")
		if digits < 2 || digits == len(word) {
			return word
		}
		return Mask(word)
	})
}

// URL masks what may be secret in a URL: credentials, the values of its query, its
// fragment, and parts of its path that look secret.
func URL(text string) string {
	text, fragment, hasFragment := strings.Cut(text, "#")
	place, query, queried := strings.Cut(text, "?")
	before, place, absolute := strings.Cut(place, "://")
	if absolute {
		before += "://"
	} else {
		before, place = "", before
	}
	host, path, hasPath := strings.Cut(place, "/")
	if at := strings.LastIndexByte(place, '@'); at >= 0 { // a password may have a slash
		host, path, hasPath = strings.Cut(place[at:], "/")
		before += Mask(place[:at])
	}
	place = before + host
	if hasPath {
		place += "/" + Text(path)
	}
	if queried {
		pairs := strings.Split(query, "&")
		for i, pair := range pairs {
			if key, value, ok := strings.Cut(pair, "="); ok {
				pairs[i] = key + "=" + Mask(value)
			} else if pair != "" {
				pairs[i] = Mask(pair)
			}
		}
		place += "?" + strings.Join(pairs, "&")
	}
	if hasFragment {
		place += "#" + Mask(fragment)
	}
	return place
}

// Place returns the scheme and the host of a URL. Credentials are hidden.
func Place(u *url.URL) string {
	if u.User != nil {
		return u.Scheme + "://" + hidden + "@" + u.Host
	}
	return u.Scheme + "://" + u.Host
}

// Header hides the value of a header, "Name: value".
func Header(text string) string {
	name, _, _ := strings.Cut(text, ":")
	return name + ": " + hidden
}

// Parts returns the parts of a path that [URL] masks.
func Parts(path string) (parts []string) {
	for part := range strings.SplitSeq(path, "/") {
		if Text(part) != part {
			parts = append(parts, part)
		}
	}
	return parts
}

// Replacer returns a replacer of known secrets, for what peers say: servers quote keys in
// their errors.
func Replacer(secrets []string) *strings.Replacer {
	const shortest = 4          // bytes: shorter strings are not secrets and masking them would garble texts
	for _, s := range secrets { // quoted as in error texts
		quoted := strconv.Quote(s)
		secrets = append(secrets, quoted[1:len(quoted)-1])
	}
	// If two secrets have a common prefix, replace the longer one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= shortest {
			pairs = append(pairs, s, hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}
