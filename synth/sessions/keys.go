package sessions

import (
	"bytes"
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
	values []string // as JSON; "" for none
	name   string
	extra  []byte // unknown keys of a row
	before []byte // with reasoning, before its tokens
	behind []byte // and after them
}

// tokensMark stands for the tokens of reasoning.
const tokensMark = "\x00"

// newClient returns the client with some values of the model's keys.
func (l *layout) newClient(values []string) client {
	c := client{values: values, extra: extraOf(l.keys, values)}
	c.before, c.behind, _ = bytes.Cut(extraOf(append(slices.Clone(l.keys), l.reasoningKey), append(slices.Clone(values), tokensMark)), []byte(tokensMark))
	var names []string
	for _, v := range values {
		if v != "" {
			names = append(names, nameOf(v))
		}
	}
	c.name = strings.Join(names, "/")
	return c
}

// extraOf returns a row's unknown keys with these values, given as JSON.
func extraOf(keys, values []string) []byte {
	var top, inside []string
	for i, key := range keys {
		name, isInside := strings.CutPrefix(key, recordedPrefix)
		member := quote(name) + ": " + values[i]
		switch {
		case values[i] == "":
		case isInside:
			inside = append(inside, member)
		default:
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
		case log.IsReasoningKey(string(key)) && (f.reasoningKey == "" || f.reasoningKey == name):
			tokens, err := log.ReasoningTokens(raw, r.osl)
			if err != nil {
				if f.badReasoning++; f.badReasoning == 1 {
					f.firstBad = name + " of request " + strconv.Itoa(len(f.rows)+1) + ": " + err.Error()
				}
			}
			if tokens.Set {
				f.reasoningKey = name
				r.reasoned = float64(tokens.Value) / float64(max(1, r.osl))
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
		f.keys = append(f.keys, key)
	}
	slices.SortFunc(f.keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	least := max(minNamed, min(maxMinNamed, int(namedShare*float64(len(f.rows)))))
	values := make([][]string, len(f.rows))
	pooled := 0
	for i, key := range f.keys {
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
				values[v.row] = make([]string, len(f.keys))
			}
			values[v.row][i] = v.value
		}
	}
	if pooled > 0 {
		f.note("%d values of %s are left out: fewer than %d requests have them", pooled, strings.Join(f.keys, ", "), least)
	}
	f.clients = []client{f.newClient(make([]string, len(f.keys)))}
	numbers := map[string]int{}
	for i := range f.rows {
		if values[i] == nil {
			continue
		}
		all := strings.Join(values[i], "\x00")
		n, known := numbers[all]
		if !known {
			n = len(f.clients)
			numbers[all] = n
			f.clients = append(f.clients, f.newClient(values[i]))
		}
		f.rows[i].client = n
	}
}
