package sessions

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// keyColumn holds the values of one key, as JSON.
type keyColumn struct {
	values  []string // distinct values; the first stands for none
	numbers map[string]int32
	of      []int32 // the number of each row's value; rows after the last have none
}

func (c *keyColumn) at(row int) int32 {
	if row < len(c.of) {
		return c.of[row]
	}
	return 0
}

func (c *keyColumn) set(row int, value string) {
	n, ok := c.numbers[value]
	if !ok {
		n = int32(len(c.values))
		c.values, c.numbers[value] = append(c.values, value), n
	}
	c.of = append(append(c.of, make([]int32, row-len(c.of))...), n)
}

// kind returns numberValue if all values are numbers, otherwise textValue.
func (c *keyColumn) kind() string {
	for _, v := range c.values[1:] {
		if v[0] == '"' {
			return textValue
		}
	}
	return numberValue
}

// maxName is the longest name of a client, in bytes of JSON.
const maxName = 256

// keyColumns are the columns of the client keys that occur.
type keyColumns map[string]*keyColumn

// add reads the keys of a row.
func (k keyColumns) add(row int, r *trace.Request) {
	if len(r.Extra) > 0 {
		k.addMembers(row, "", r.Extra)
	}
}

func (k keyColumns) addMembers(row int, prefix string, object []byte) {
	// Its only error is a key that is given twice; the first one counts.
	_ = jsonscan.Members(object, func(key []byte, _ int, raw []byte) error {
		if string(key) == recorded && prefix == "" && raw[0] == '{' {
			k.addMembers(row, recordedPrefix, raw)
			return nil
		}
		value := string(raw[:min(len(raw), maxName+1)])
		if len(raw) > maxName || !slices.Contains(clientKeys, string(key)) || value == `""` || value[0] != '"' && !isNumber(value) {
			return nil
		}
		name := prefix + string(key)
		if k[name] == nil {
			k[name] = &keyColumn{values: []string{""}, numbers: make(map[string]int32)}
		}
		k[name].set(row, value)
		return nil
	})
}

// inOrder returns the keys, the most specific first.
func (k keyColumns) inOrder() []string {
	rank := func(key string) int { return slices.Index(clientKeys, strings.TrimPrefix(key, recordedPrefix)) }
	return slices.SortedFunc(maps.Keys(k), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
}

// nameOf returns the text of a JSON string, or a number as it is.
func nameOf(value string) string {
	var text string
	if strings.HasPrefix(value, `"`) && sonic.UnmarshalString(value, &text) == nil {
		return text
	}
	return value
}
