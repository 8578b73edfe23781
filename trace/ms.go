package trace

import "strconv"

// MaxMS bounds times. Milliseconds of the Unix epoch stay far below it; above
// it a float64 no longer tells a microsecond from the next.
const MaxMS = 1e15

// AppendMS appends milliseconds as a decimal number: the shortest that reads
// back as the same value, and never with an exponent.
func AppendMS(dst []byte, ms float64) []byte {
	if i := int64(ms); float64(i) == ms && i < MaxMS && i > -MaxMS {
		return strconv.AppendInt(dst, i, 10)
	}
	return strconv.AppendFloat(dst, ms, 'f', -1, 64)
}
