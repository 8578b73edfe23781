package trace

import "math"

// Speed makes a trace play x times as fast: arrivals and delays are divided by
// x, which must be above 0. Nothing is rounded beyond the last digit.
func Speed(reqs Requests, x float64) Requests {
	return mapRows(reqs, func(r Request) Request {
		r.Timestamp.Value /= x
		r.Delay.Value /= x
		return r
	})
}

// Rebase moves the trace so that its first arrival is at 0.
func Rebase(reqs Requests) Requests {
	return func(yield func(Request, error) bool) {
		var origin Opt[float64]
		for r, err := range reqs {
			if r.Timestamp.Set {
				if !origin.Set {
					origin = r.Timestamp
				}
				r.Timestamp.Value -= origin.Value
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Ramp lets the rate of arrivals grow linearly, from 0 at time 0 to what the
// trace has at the time full, in milliseconds and above 0. What arrives in the
// first half of that time is stretched over all of it: by t < full, the rows
// have arrived of the first t*t/(2*full) ms. Later rows keep their gaps, and
// delays stay as they are. It is a change of the clock, so no row is dropped
// and Poisson arrivals stay a Poisson process, whose rate grows.
func Ramp(reqs Requests, full float64) Requests {
	return mapRows(reqs, func(r Request) Request {
		switch at := r.Timestamp.Value; {
		case !r.Timestamp.Set || at <= 0:
		case at < full/2:
			r.Timestamp.Value = math.Sqrt(2 * full * at)
		default:
			r.Timestamp.Value = at + full/2
		}
		return r
	})
}

// AtOnce lets every row arrive at 0, with or without an arrival of its own: a
// closed loop, in which it is the room that is left that decides what is sent
// when. A row that only has a delay keeps following the turn before it.
func AtOnce(reqs Requests) Requests {
	return mapRows(reqs, func(r Request) Request {
		if r.Timestamp.Set || !r.Delay.Set {
			r.Timestamp = Some(0.0)
		}
		return r
	})
}

func mapRows(reqs Requests, f func(Request) Request) Requests {
	return func(yield func(Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				r = f(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
