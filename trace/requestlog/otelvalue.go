package requestlog

import (
	"bytes"

	"moontide/trace/jsonscan"
)

// maxNested limits the nesting of an attribute.
const maxNested = 64

// attributes returns attributes as members, whose values are plain JSON. OTLP has a list
// of keys with typed values, other exporters have an object.
func attributes(raw []byte) members {
	if len(raw) == 0 {
		return members{}
	}
	if raw[0] == '{' {
		m, err := membersOf(raw)
		if err != nil {
			return members{}
		}
		return m
	}
	m := members{}
	elements(raw, func(element []byte) {
		if key, value := keyValue(element, 0); value != nil {
			m[key] = value
		}
	})
	return m
}

// keyValue returns a key and its value as plain JSON, nil if there is none.
func keyValue(raw []byte, depth int) (key string, value []byte) {
	m, err := membersOf(raw)
	if err != nil {
		return "", nil
	}
	return textOf(m["key"]), anyValue(m["value"], depth)
}

// anyValue returns a typed value as plain JSON, nil if there is none.
func anyValue(raw []byte, depth int) []byte {
	if len(raw) == 0 || raw[0] != '{' || depth > maxNested {
		return nil
	}
	m, err := membersOf(raw)
	if err != nil {
		return nil
	}
	for _, kind := range []string{"stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "string_value", "int_value", "double_value", "bool_value"} {
		if v := m[kind]; v != nil {
			if v[0] == '{' || v[0] == '[' {
				return nil
			}
			return v
		}
	}
	if _, list := (&fields{members: m}).first("arrayValue", "array_value"); list != nil {
		return arrayValue(list, depth)
	}
	if _, list := (&fields{members: m}).first("kvlistValue", "kvlist_value"); list != nil {
		return listValue(list, depth)
	}
	return nil
}

func arrayValue(raw []byte, depth int) []byte {
	var all [][]byte
	m, _ := membersOf(raw)
	elements(m["values"], func(element []byte) {
		if v := anyValue(element, depth+1); v != nil {
			all = append(all, v)
		}
	})
	return list(all)
}

func listValue(raw []byte, depth int) []byte {
	var all []any
	m, _ := membersOf(raw)
	elements(m["values"], func(element []byte) {
		if key, v := keyValue(element, depth+1); v != nil {
			all = append(all, key, v)
		}
	})
	return object(all...)
}

// elements calls visit for the elements of an array, and for none of anything else.
func elements(raw []byte, visit func([]byte)) {
	if len(raw) == 0 || raw[0] != '[' {
		return
	}
	jsonscan.Elements(raw, func(_ int, element []byte) error {
		visit(element)
		return nil
	})
}

// list returns a JSON array.
func list(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte(","))...), ']')
}

// object returns a JSON object of keys, each followed by its value, which is left out if
// it is empty.
func object(pairs ...any) []byte {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		value := pairs[i+1].([]byte)
		if len(value) == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, quoted(pairs[i].(string))...), ':')
		b = append(b, value...)
	}
	return append(b, '}')
}
