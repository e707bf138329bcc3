package rdma9p

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// endDelay is enough time for a started goroutine to run.
const endDelay = 100 * time.Millisecond

// DelayEnd returns a Handler that works like h, but sees the end of its stream a moment late. A panic of h becomes an
// error.
//
// The server of p9 v0.3.0 needs this: for each request it starts a goroutine that reads the next one, and the goroutine adds itself
// to a sync.WaitGroup when it runs. If the stream ends before that, Handle may panic.
func DelayEnd(h Handler) Handler { return &delayed{h} }

type delayed struct{ Handler }

func (d *delayed) Handle(t io.ReadCloser, r io.WriteCloser) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("9p: the handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return d.Handler.Handle(&delayedReader{t}, r)
}

type delayedReader struct{ io.ReadCloser }

func (r *delayedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		time.Sleep(endDelay)
	}
	return n, err
}
