package sessions

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace/jsonscan"

	"moontide/trace/log"
)

// clientKeys are the keys that can name the client of a row, the most specific
// first: unknown keys of a row, or of its object recorded.
var clientKeys = []string{
	"client", "client_id", "tenant", "tenant_id", "app", "app_id", "user", "user_id", "template", "template_id", "model", "type", "Log Type",
}

// recorded is the object of a row in which formats keep what they do not use.
// Its members are keys with this prefix.
const (
	recorded       = log.RecordedKey
	recordedPrefix = recorded + "."
)

const (
	// maxName is the longest value of a client key, in bytes of JSON.
	maxName = 256
	// A value is kept if at least this many rows have it.
	minNamed, maxMinNamed, namedShare = 5, 100, .05
)

// client is a combination of values of the client keys.
type client struct {
	Values []string `json:"values"` // as JSON; "" for none

	name  string
	extra []byte // unknown keys of a row
}

// prepare derives the rest of a client from its values.
func (m *Model) prepare(c *client) {
	c.extra = extraOf(m.Keys, c.Values)
	var names []string
	for _, v := range c.Values {
		if v != "" {
			names = append(names, nameOf(v))
		}
	}
	c.name = strings.Join(names, "/")
}

// reasoned returns the unknown keys of a turn with tokens of reasoning.
func (m *Model) reasoned(t *turn) []byte {
	tokens := ((t.Reasoned-1)*t.OSL + reasonedParts/2) / reasonedParts
	values := append(slices.Clone(m.KnownClients[t.Client].Values), strconv.Itoa(tokens))
	return extraOf(append(slices.Clone(m.Keys), m.ReasoningKey), values)
}

// extraOf returns a row's unknown keys with these values, given as JSON.
func extraOf(keys, values []string) []byte {
	var top, inside []string
	for i, key := range keys {
		if values[i] == "" {
			continue
		}
		name, isInside := strings.CutPrefix(key, recordedPrefix)
		if member := quote(name) + ": " + values[i]; isInside {
			inside = append(inside, member)
		} else {
			top = append(top, member)
		}
	}
	if len(inside) > 0 {
		top = append(top, quote(recorded)+": {"+strings.Join(inside, ", ")+"}")
	}
	if len(top) == 0 {
		return nil
	}
	return []byte("{" + strings.Join(top, ", ") + "}")
}

// quote returns a JSON string.
func quote(text string) string {
	quoted, _ := sonic.MarshalString(text) // never fails for a string
	return quoted
}

// nameOf returns the text of a JSON string, or a number as it is.
func nameOf(value string) string {
	var text string
	if strings.HasPrefix(value, `"`) && sonic.UnmarshalString(value, &text) == nil {
		return text
	}
	return value
}

// isName reports whether a JSON value may name a client: a string or a number.
func isName(value string) bool {
	if len(value) > maxName || value == `""` || !sonic.ValidString(value) {
		return false
	}
	x, err := strconv.ParseFloat(value, 64)
	return value[0] == '"' && value[len(value)-1] == '"' || err == nil && !math.IsInf(x, 0)
}

// readKeys reads the client keys and the reasoning of a row, or of its object recorded.
func (f *fitter) readKeys(r *row, prefix string, object []byte) {
	// Its only error is a key that is given twice; the first one counts.
	_ = jsonscan.Members(object, func(key []byte, _ int, raw []byte) error {
		name := prefix + string(key)
		switch value := string(raw); {
		case name == recorded && raw[0] == '{':
			f.readKeys(r, recordedPrefix, raw)
		case slices.Contains(clientKeys, string(key)) && isName(value):
			f.values[name] = append(f.values[name], keyValue{len(f.rows), value})
		case log.IsReasoningKey(string(key)) && (f.ReasoningKey == "" || f.ReasoningKey == name):
			tokens, err := log.ReasoningTokens(raw, r.OSL)
			if err != nil {
				f.badReasoning++
			}
			if tokens.Set {
				f.ReasoningKey = name
				r.Reasoned = 1 + tokens.Value*reasonedParts/max(1, r.OSL)
			}
		}
		return nil
	})
}

// keyValue is the value of a key in a row.
type keyValue struct {
	row   int
	value string
}

// nameClients sets the clients of the rows: combinations of values that enough rows have.
func (f *fitter) nameClients() {
	rank := func(key string) int { return slices.Index(clientKeys, strings.TrimPrefix(key, recordedPrefix)) }
	for key := range f.values {
		f.Keys = append(f.Keys, key)
	}
	slices.SortFunc(f.Keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	least := max(minNamed, min(maxMinNamed, int(namedShare*float64(len(f.rows)))))
	values := make([][]string, len(f.rows))
	pooled := 0
	for i, key := range f.Keys {
		counts := map[string]int{}
		for _, v := range f.values[key] {
			counts[v.value]++
		}
		for _, v := range f.values[key] {
			if counts[v.value] < least {
				pooled++
				continue
			}
			if values[v.row] == nil {
				values[v.row] = make([]string, len(f.Keys))
			}
			values[v.row][i] = v.value
		}
	}
	if pooled > 0 {
		f.note("%d values of %s are left out: fewer than %d requests have them", pooled, strings.Join(f.Keys, ", "), least)
	}
	f.KnownClients = []client{{Values: make([]string, len(f.Keys))}}
	numbers := map[string]int{}
	for i := range f.rows {
		if values[i] == nil {
			continue
		}
		all := strings.Join(values[i], "\x00")
		n, known := numbers[all]
		if !known {
			n = len(f.KnownClients)
			numbers[all] = n
			f.KnownClients = append(f.KnownClients, client{Values: values[i]})
		}
		f.rows[i].Client = n
	}
	for i := range f.KnownClients {
		f.prepare(&f.KnownClients[i])
	}
}
