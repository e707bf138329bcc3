package connectperf

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// A report holds the results of the marks.
type report struct {
	Marks   marks.List `json:"marks"`
	Samples []samples  `json:"samples"`

	ctx     context.Context
	stderr  io.Writer
	repeats int
	largest int // number of connections: 4096
}

// runMarks measures all marks.
func runMarks(ctx context.Context, o *options, s cli.Streams, progress *cli.Progress) error {
	r := &report{ctx: ctx, stderr: s.Err, repeats: o.repeats, largest: 4096}
	measures := []func() error{r.overlap, r.pipeline, r.againstRaw, r.againstEach, r.authentication, r.flood}
	for i, measure := range measures {
		progress.Say("measuring, %d of %d", i+1, len(measures))
		if err := measure(); err != nil {
			return err
		}
	}
	progress.Clear()
	var err error
	if o.json {
		err = printJSON(s.Out, r)
	} else {
		err = r.Marks.Print(s.Out)
	}
	if err == nil && r.Marks.Missed() {
		err = marks.ErrMissed
	}
	return err
}

// take measures points in turn, repeats times unless the flag says how often.
func (r *report) take(delay time.Duration, repeats int, points ...point) ([]samples, error) {
	all, err := interleaved(r.ctx, r.stderr, delay, cmp.Or(r.repeats, repeats), points...)
	r.Samples = append(r.Samples, all...)
	return all, err
}
