package rmaperf

import (
	"errors"
	"os"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
)

// plotWindow is the number of RTT over which the rate of a flow is taken for a plot.
const plotWindow = 25

// drawFlows writes a plot of the rates of all flows, and of their fair share, if a file is named.
func (b *bench) drawFlows(periods []period) error {
	if b.opts.svg == "" {
		return nil
	}
	f, err := os.Create(b.opts.svg)
	if err != nil {
		return err
	}
	return errors.Join(flowsChart(periods).WriteSVG(f), f.Close())
}

func flowsChart(periods []period) *chart.Chart {
	const megabits = 8 / 1e6
	var fair []chart.Point
	each := make([][]chart.Point, flows)
	at := 0.0
	for _, p := range periods {
		share := p.Rate * megabits / flows
		fair = append(fair, chart.Point{X: at, Y: share})
		for _, rates := range p.Rates {
			at += plotWindow
			for i, rate := range rates {
				each[i] = append(each[i], chart.Point{X: at - plotWindow/2, Y: rate * megabits})
			}
		}
		fair = append(fair, chart.Point{X: at, Y: share})
	}
	c := &chart.Chart{Title: "Rates of eight flows", Unit: "Mb/s", Over: "RTT", Linear: true}
	c.Add("fair share", "c2", fair)
	for i, points := range each {
		name := ""
		if i == 0 {
			name = "each flow"
		}
		c.Add(name, "c1 t2", points)
	}
	return c
}
