package trace

import "math"

// Speed divides arrivals and delays by x, which must be above 0: the trace plays
// x times as fast.
func Speed(reqs Requests, x float64) Requests {
	return mapRows(reqs, func(r Request) Request {
		r.Timestamp.Value /= x
		r.Delay.Value /= x
		return r
	})
}

// Rebase shifts arrivals so that the first is at 0.
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

// Ramp makes the arrival rate grow linearly from 0 to that of the trace during the
// first full milliseconds (above 0). It stretches the first full/2 ms of the trace
// over that time: by t < full, the rows of the first t*t/(2*full) ms have arrived.
// Later rows keep their gaps; delays do not change. No row is dropped, and Poisson
// arrivals remain a Poisson process with a growing rate.
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

// AtOnce makes every row arrive at 0: with a limit on requests in flight, a closed
// loop. A row with only a delay still follows its previous turn.
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
