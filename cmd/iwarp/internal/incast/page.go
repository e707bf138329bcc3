package incast

import (
	"fmt"
	"os"
	"strconv"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
)

// writeHTML writes a page with the backlog of the first run of each way.
func (r *report) writeHTML(file string) error {
	p := chart.Page{
		Title: "iwarp perf incast",
		Lead:  "Many hosts have data for one receiver behind a link: they write it at once, or the receiver reads under a Solicitor.",
		Facts: [][2]string{{"Window", strconv.FormatInt(r.Window>>10, 10) + " KiB"}, {"Link", fmt.Sprintf("%.0f Mb/s", float64(r.rate)*8/1e6)}},
		Head:  []string{"mark", "measured", "target", "met"},
	}
	backlog := chart.Chart{Title: "Octets on the link", Unit: "KiB", Over: "ms", Linear: true, Mark: float64(r.Window) / 1024}
	for i, w := range ways {
		s := r.of(w.name)[0]
		var points []chart.Point
		for _, b := range s.Backlogs {
			points = append(points, chart.Point{X: float64(b.At.Microseconds()) / 1e3, Y: float64(b.Octets) / 1024})
		}
		backlog.Add(w.short, "c"+strconv.Itoa(i+1), points)
	}
	p.Charts = []chart.Chart{backlog}
	for _, m := range r.Marks {
		p.Rows = append(p.Rows, append(chart.Texts(m.What, chart.Number(m.Value), m.Goal()), chart.Verdict(&m.Met)))
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := p.Write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
