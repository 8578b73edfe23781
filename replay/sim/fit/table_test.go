package fit_test

import (
	"reflect"
	"strings"
	"testing"

	"moontide/replay/sim/fit"
)

const goodTable = `deployment,isl,osl,concurrency,request_throughput,output_throughput,mean_e2el_ms,mean_ttft_ms,mean_tpot_ms,median_itl_ms
A,3000,150,1,0.2,30,5000,530,30,30
A,3000,150,4,0.5,72,8000,900,50,
`

func TestReadTable(t *testing.T) {
	table, err := fit.ReadTable(strings.NewReader("\ufeff" + goodTable))
	if err != nil {
		t.Fatal(err)
	}
	m := table.Measurements[1]
	want := fit.Measurement{
		Name: "line 3", Deployment: "A", Load: fit.Load{ISL: 3000, OSL: 150, Concurrency: 4, MeanOutput: 143},
		Values: fit.Values{fit.RequestThroughput: 0.5, fit.OutputThroughput: 72, fit.MeanE2EL: 8000, fit.MeanTTFT: 900, fit.MeanTPOT: 50},
	}
	if len(table.Measurements) != 2 || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if first := table.Measurements[0].Load.MeanOutput; first != 0 {
		t.Errorf("answers of the OSL have a mean of %v", first)
	}
	if len(table.Ignored) != 1 || table.Ignored[0] != "median_itl_ms" {
		t.Errorf("ignored: %q", table.Ignored)
	}
}

// What is wrong with a table is said with its line and column.
func TestReadTableErrors(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"isl,", "prompt_len,", "line 2: want isl and osl above 0"},
		{"concurrency,", "users,", "line 2: want isl and osl above 0, a concurrency"},
		{"mean_ttft_ms", "mean_tpot_ms", `two columns "mean_tpot_ms"`},
		{"3000,150,4", "3000.5,150,4", "line 3: column isl: 3000.5 is not a whole number"},
		{"3000,150,4", "3000,0,4", "line 3: want isl and osl above 0"},
		{"8000", "8 s", `line 3: column mean_e2el_ms: "8 s" is not a number`},
		{"8000", "-8000", `"-8000" is not a number from 0 on`},
		{"8000", "NaN", `"NaN" is not a number from 0 on`},
		{"900,50,", "900,50", "line 3: wrong number of fields"},
		{"A,3000,150,4,0.5,72,8000,900,50,", "A,3000,150,4,,,,,,", "line 3: want isl"},
		{"A,3000,150,4,0.5,", "A,3000,150,,0.5,", "line 3: want isl"},
	} {
		text := strings.Replace(goodTable, test.from, test.to, 1)
		if _, err := fit.ReadTable(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s -> %s: %v, want %s", test.from, test.to, err, test.want)
		}
	}
	for text, want := range map[string]string{"": "the table has no rows", strings.SplitAfter(goodTable, "\n")[0]: "the table has no rows", "isl,osl,concurrency\n1,1,1\n": "and a metric such as"} {
		if _, err := fit.ReadTable(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
