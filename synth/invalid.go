package synth

import "fmt"

// invalid is the panic of [Fail].
type invalid struct{ error }

// Fail ends the check of an input at its first error, which the caller's
// deferred [Catch] stores.
func Fail(format string, args ...any) { panic(invalid{fmt.Errorf(format, args...)}) }

// Catch stores the error of a [Fail] in err. It must be deferred.
func Catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case invalid:
		*err = e.error
	default:
		panic(e)
	}
}
