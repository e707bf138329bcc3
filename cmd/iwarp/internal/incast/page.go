package incast

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// points is how many values of a series a plot shows.
const points = 300

// Files of a directory.
const (
	backlogFile = "incast-backlog.svg"
	victimFile  = "incast-victim.svg"
)

// canDraw reports whether draw can write its files.
func canDraw(page, directory string) error {
	err := cli.CanWrite(page)
	if err == nil && directory != "" {
		err = cli.CanWrite(filepath.Join(directory, backlogFile))
	}
	return err
}

// draw writes a page with the plots, and each plot as a file in a directory, for each name that is not empty.
func (r *report) draw(page, directory string) error {
	backlog, victim := r.charts()
	if page != "" {
		if err := create(page, r.page(backlog, victim).Write); err != nil {
			return err
		}
	}
	if directory == "" {
		return nil
	}
	if err := create(filepath.Join(directory, backlogFile), backlog.WriteSVG); err != nil {
		return err
	}
	return create(filepath.Join(directory, victimFile), victim.WriteSVG)
}

func create(file string, write func(w io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// charts returns the backlog and the times of the victim, of the first run of each way.
func (r *report) charts() (backlog, victim *chart.Chart) {
	backlog = &chart.Chart{Title: "Octets on the link", Unit: "KiB", Over: "ms", Mark: float64(r.Window) / 1024}
	victim = &chart.Chart{Title: "Time of a Read of 64 octets from another host", Unit: "ms", Over: "ms"}
	for i, w := range ways {
		s := r.of(w.name)[0]
		var b, v []chart.Point
		for _, at := range s.Backlogs {
			b = append(b, chart.Point{X: milliseconds(at.At), Y: float64(at.Octets) / 1024})
		}
		for _, read := range s.reads {
			v = append(v, chart.Point{X: milliseconds(read.at), Y: milliseconds(read.took)})
		}
		class := "c" + strconv.Itoa(i+1)
		backlog.Add(w.short, class, thin(b))
		victim.Add(w.short, class, thin(v))
	}
	return backlog, victim
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// thin keeps the highest of each few values.
func thin(all []chart.Point) (some []chart.Point) {
	n := (len(all) + points - 1) / points
	for i, p := range all {
		switch last := len(some) - 1; {
		case i%n == 0:
			some = append(some, p)
		case p.Y > some[last].Y:
			some[last] = p
		}
	}
	return some
}

func (r *report) page(charts ...*chart.Chart) *chart.Page {
	p := &chart.Page{
		Title: "iwarp perf incast",
		Lead: "Many hosts have data for one receiver behind a link: they write it at once (Writes), the receiver reads it under a Solicitor (Reads), " +
			"or it pulls their sealed writes under one (rma).",
		Facts: [][2]string{
			{"Window", strconv.FormatInt(r.Window>>10, 10) + " KiB"},
			{"Link", fmt.Sprintf("%.0f Mb/s", float64(r.rate)*8/1e6)},
			{"Buffer", strconv.Itoa(r.Buffer>>10) + " KiB"},
		},
		Head: []string{"case", "measured", "target", "met"},
	}
	for _, c := range charts {
		p.Charts = append(p.Charts, *c)
	}
	for _, m := range r.Marks {
		p.Rows = append(p.Rows, append(chart.Texts(m.What, chart.Number(m.Value), m.Goal()), chart.Verdict(&m.Met)))
	}
	return p
}
