package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text returns the setting of d as [Parameter.Set] reads it.
func (p Parameter) Text(d *Deployment) string { return fieldText(p.Field(d)) }

// Set parses the setting: a whole number, true or false, a time with a unit such as
// 46.7ns, a decode table, or a law of sharing.
func (p Parameter) Set(d *Deployment, text string) error { return setField(p.Field(d), text) }

// IsZero reports whether the setting of d has its zero value.
func (p Parameter) IsZero(d *Deployment) bool {
	switch field := p.Field(d).(type) {
	case *DecodeTable:
		return len(*field) == 0
	default:
		var none Deployment
		return fieldText(field) == p.Text(&none)
	}
}

// FindParameter returns the parameter of a name.
func FindParameter(name string) (p Parameter, found bool) {
	i := slices.IndexFunc(Parameters, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return p, false
	}
	return Parameters[i], true
}

func fieldText(field any) string {
	switch field := field.(type) {
	case *int:
		return strconv.Itoa(*field)
	case *bool:
		return strconv.FormatBool(*field)
	case *time.Duration:
		return CostOf(*field).String()
	case *Cost:
		return field.String()
	case *DecodeTable:
		return field.String()
	case *Sharing:
		return string(*field)
	}
	panic(fmt.Sprintf("engine: a parameter of type %T", field))
}

func setField(field any, text string) (err error) {
	switch field := field.(type) {
	case *int:
		if *field, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%.40q is not a whole number", text)
		}
	case *bool:
		if *field, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.40q is neither true nor false", text)
		}
	case *time.Duration:
		cost, err := ParseCost(text)
		*field = cost.Duration()
		return err
	case *Cost:
		*field, err = ParseCost(text)
		return err
	case *DecodeTable:
		*field, err = ParseDecodeTable(text)
		return err
	case *Sharing:
		*field, err = ParseSharing(text)
		return err
	}
	return nil
}

// ParseSharing returns the law of a name.
func ParseSharing(name string) (Sharing, error) {
	if slices.Contains(Sharings, Sharing(name)) {
		return Sharing(name), nil
	}
	var names []string
	for _, s := range Sharings {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("%.40q is not one of %s", name, strings.Join(names, ", "))
}
