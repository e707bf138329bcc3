package connectperf

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// A report is what the marks have come to.
type report struct {
	Marks   marks.List `json:"marks"`
	Samples []samples  `json:"samples"`

	ctx     context.Context
	stderr  io.Writer
	repeats int
	largest int // number of connections: 4096
}

// runMarks measures all marks.
func runMarks(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	r := &report{ctx: ctx, stderr: stderr, repeats: o.repeats, largest: 4096}
	for _, measure := range []func() error{r.overlap, r.pipeline, r.againstRaw, r.againstEach, r.authentication, r.flood} {
		if err := measure(); err != nil {
			return err
		}
	}
	var err error
	if o.json {
		err = printJSON(stdout, r)
	} else {
		err = r.Marks.Print(stdout)
	}
	if err == nil && r.Marks.Missed() {
		err = marks.ErrMissed
	}
	return err
}

// take measures points in turn: so often, unless the flag says how often.
func (r *report) take(delay time.Duration, repeats int, points ...point) ([]samples, error) {
	all, err := interleaved(r.ctx, r.stderr, delay, cmp.Or(r.repeats, repeats), points...)
	r.Samples = append(r.Samples, all...)
	return all, err
}
