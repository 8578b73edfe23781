package figure_test

import (
	"fmt"
	"os"

	"moontide/analyze/report/figure"
)

func Example() {
	f := figure.Figure{
		Title:  "Hit rate against cache size",
		X:      figure.Axis{Label: "Cache size", Quantity: figure.Bytes, Log: true},
		Y:      figure.Axis{Label: "Block hit rate", Quantity: figure.Percent},
		Series: []figure.Series{{Name: "LRU", Kind: figure.Steps, X: []float64{1 << 30, 8 << 30, 64 << 30}, Y: []float64{0.04, 0.21, 0.35}}},
	}
	file, err := os.CreateTemp("", "*.png")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	fmt.Println(figure.WritePNG(file, figure.Sheet{Figures: []figure.Figure{f}}), f.X.Text(8<<30))
	// Output: <nil> 8 GiB
}
