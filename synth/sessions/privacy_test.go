package sessions_test

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// value is a value of a distribution in a model's file.
type value struct {
	Splits [][4]float64
	Leaves [][][]float64
}

// boundsFile has the parts of a client's model with bounds.
type boundsFile struct {
	ISL, OSL       [2]float64
	First          []value                       `json:"first_turn"`
	Templated      []value                       `json:"first_turn_templated"`
	Turns          map[string][]value            `json:"later_turns"`
	Lengths        map[string][]value            `json:"later_lengths"`
	Continues      struct{ Splits [][4]float64 } `json:"continues"`
	ContinuesAgain struct{ Splits [][4]float64 } `json:"continues_again"`
}

// No bound of a bin or split is the value of a request: those are whole numbers
// here, and bounds are not. A bin of a single value rests on five requests.
func TestBoundsAreNoRequestsValues(t *testing.T) {
	t.Parallel()
	for _, name := range append(slices.Sorted(maps.Keys(workloads)), "conversation") {
		t.Run(name, func(t *testing.T) { checkBounds(t, name) })
	}
}

func checkBounds(t *testing.T, name string) {
	var rows []trace.Request
	if name == "conversation" {
		rows = conversation(t)
	} else {
		rows = workloads[name].rows()
	}
	osl := make(map[int]int)
	for _, r := range rows {
		osl[r.OutputLength]++
	}
	var file struct{ Clients []boundsFile }
	if err := json.Unmarshal(saved(t, modelOf(t, name, rows)), &file); err != nil {
		t.Fatal(err)
	}
	m := file.Clients[0]
	bounds := 0
	between := func(what string, x float64) {
		bounds++
		if math.Abs(x-math.Floor(x)-.5) > 1e-9 {
			t.Errorf("%s %v does not end in .5", what, x)
		}
	}
	splits := func(some [][4]float64, whole ...int) {
		for _, c := range some {
			if slices.Contains(whole, int(c[0])) {
				between("cut", c[1])
			}
		}
	}
	check := func(vs []value, from int, whole ...int) {
		for i, v := range vs {
			splits(v.Splits, whole...)
			for _, leaf := range v.Leaves {
				for _, bin := range leaf {
					switch {
					case i < from:
					case len(bin) == 5:
						between("bound", bin[2])
						between("bound", bin[3])
					case i == len(vs)-1 && osl[int(bin[2])] < 5:
						t.Errorf("OSL %v occurs in only %d requests", bin[2], osl[int(bin[2])])
					}
				}
			}
		}
	}
	for _, x := range slices.Concat(m.ISL[:], m.OSL[:]) {
		between("range", x)
	}
	check(m.First, 0, 3)
	check(m.Templated, 0, 3)
	// ISL, OSL, new tokens, and the values after the shared part: of these the
	// mean of gaps is no whole number.
	known := []int{1, 2, 4, 5, 8, 12, 15}
	for _, vs := range m.Turns {
		check(append(vs, value{}), 1, known...)
	}
	for _, vs := range m.Lengths {
		check(vs, 0, known...)
	}
	splits(m.Continues.Splits, known...)
	splits(m.ContinuesAgain.Splits, known...)
	if bounds < 50 {
		t.Errorf("only %d bounds", bounds)
	}
}

// partsFile has the parts of a client's model with the numbers of their requests.
type partsFile struct {
	Templates      [][]float64
	FirstTurn      []value                      `json:"first_turn"`
	FirstTemplated []value                      `json:"first_turn_templated"`
	Continues      struct{ Leaves [][]float64 } `json:"continues"`
	Again          struct{ Leaves [][]float64 } `json:"continues_again"`
	Templated      struct{ Leaves [][]float64 } `json:"starts_with_template"`
	Turns          map[string][]value           `json:"later_turns"`
	Lengths        map[string][]value           `json:"later_lengths"`
	Arrivals       struct {
		Jitter, Segments, Timetable [][]float64
		Steps                       []value
	}
}

// eachPart calls f with the number of requests in each part of a model's file.
func eachPart(t *testing.T, file []byte, f func(what string, requests float64)) {
	t.Helper()
	var all struct {
		Clients []partsFile
		Bursts  struct{ Offsets, Gaps []value }
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	values := func(what string, vs []value) {
		for _, v := range vs {
			for _, leaf := range v.Leaves {
				for _, bin := range leaf {
					f(what, bin[0])
				}
			}
		}
	}
	values("burst", slices.Concat(all.Bursts.Offsets, all.Bursts.Gaps))
	for _, m := range all.Clients {
		values("first turn", slices.Concat(m.FirstTurn, m.FirstTemplated))
		values("step", m.Arrivals.Steps)
		for _, named := range []map[string][]value{m.Turns, m.Lengths} {
			for name, vs := range named {
				values(name, vs)
			}
		}
		for _, leaf := range slices.Concat(m.Continues.Leaves, m.Again.Leaves, m.Templated.Leaves) {
			f("choice", leaf[0])
		}
		for _, part := range slices.Concat(m.Arrivals.Jitter, m.Arrivals.Segments, m.Arrivals.Timetable) {
			f("arrival", part[0])
		}
		for _, p := range m.Templates {
			f("template", p[1])
		}
	}
}

// Every part of a model is derived from at least five requests.
func TestPartsRestOnFiveRequests(t *testing.T) {
	t.Parallel()
	sources := map[string][]trace.Request{"conversation": nil}
	for name, w := range workloads {
		sources[name] = w.rows()
		sources[name+", head"] = sources[name][:60]
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		t.Run(name, func(t *testing.T) {
			rows := sources[name]
			if rows == nil {
				rows = conversation(t)
			}
			n, least := 0, 1e9
			eachPart(t, saved(t, modelOf(t, name, rows)), func(what string, requests float64) {
				n++
				least = min(least, requests)
				if requests < 5 {
					t.Errorf("a %s rests on %v requests", what, requests)
				}
			})
			t.Logf("%d parts, the least of %v requests", n, least)
			if n < 10 {
				t.Errorf("only %d parts", n)
			}
		})
	}
}

// Neither ids nor sequences of rows of the source are drawn.
func TestNothingIsCopied(t *testing.T) {
	t.Parallel()
	for name, copies := range map[string]int{"conversation": 12, "toolagent": 12} {
		t.Run(name, func(t *testing.T) {
			if name == "conversation" {
				checkNothingIsCopied(t, conversation(t), copies)
			} else {
				checkNothingIsCopied(t, workloads[name].rows(), copies)
			}
		})
	}
}

// checkNothingIsCopied allows for some pairs of rows that are equal by chance.
func checkNothingIsCopied(t *testing.T, rows []trace.Request, copies int) {
	t.Helper()
	rows = slices.Clone(rows)
	for i := range rows { // ids that no other trace would have
		rows[i].HashIDs = slices.Clone(rows[i].HashIDs)
		for k := range rows[i].HashIDs {
			rows[i].HashIDs[k] = rows[i].HashIDs[k]*7_919_000_003 + 1<<40
		}
	}
	m := fit(t, rows, sessions.Options{})
	file := string(saved(t, m))
	type lengths struct{ isl, osl int }
	pair := func(rows []trace.Request, i int) [2]lengths {
		return [2]lengths{{rows[i].InputLength, rows[i].OutputLength}, {rows[i+1].InputLength, rows[i+1].OutputLength}}
	}
	known := make(map[[2]lengths]bool)
	ids := make(map[uint64]bool)
	for i, r := range rows {
		if i+1 < len(rows) {
			known[pair(rows, i)] = true
		}
		for _, id := range r.HashIDs {
			ids[id] = true
		}
	}
	for _, number := range regexp.MustCompile(`\d{10,}`).FindAllString(file, -1) {
		if id, err := strconv.ParseUint(number, 10, 64); err == nil && ids[id] {
			t.Errorf("id %d of the source is in the file", id)
		}
	}
	drawn := draw(t, m, 1, len(rows))
	copied, longest, now := 0, 0, 0
	for i := range drawn[:len(drawn)-1] {
		now++
		if !known[pair(drawn, i)] {
			now = 0
		} else {
			copied++
		}
		longest = max(longest, now)
		for _, id := range drawn[i].HashIDs {
			if ids[id] {
				t.Fatalf("id %d is the source's", id)
			}
		}
	}
	t.Logf("%d of %d pairs of neighbours are also in the source", copied, len(drawn))
	if longest > 1 {
		t.Errorf("%d consecutive rows are as in the source", longest+1)
	}
	if copied > copies {
		t.Errorf("%d pairs of consecutive rows are as in the source", copied)
	}
}
