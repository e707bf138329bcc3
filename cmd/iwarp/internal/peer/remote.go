package peer

import (
	"context"
	"errors"
	"io"
)

// A Remote is a server process that is started when it is first needed, and the control connection with it.
type Remote struct {
	child   *Child // nil: it was not started
	control *Control
	meter   Meter
}

// Start starts the process, as this program with args, unless it runs. If profile is not empty, the process writes a profile to
// that file with the suffix ".server".
func (r *Remote) Start(ctx context.Context, stderr io.Writer, profile string, args ...string) (err error) {
	if r.child != nil {
		return nil
	}
	if profile != "" {
		args = append(args, "--cpuprofile", profile+".server")
	}
	if r.child, err = Start(ctx, stderr, args...); err != nil {
		return err
	}
	r.control, err = DialControl(r.child)
	return err
}

var errNotStarted = errors.New("the server process was not started")

// Do sends the server an order, and waits for the result; result is a pointer.
func (r *Remote) Do(order, result any) error {
	if r.control == nil {
		return errNotStarted
	}
	return r.control.Do(order, result)
}

// Usage returns what this process and the server have used.
func (r *Remote) Usage() (Usage, error) {
	u, err := r.control.Usage()
	return r.meter.Read().Plus(u), err
}

// UsageOfServer is like Usage, but counts only allocations of the server.
func (r *Remote) UsageOfServer() (Usage, error) {
	u, err := r.control.Usage()
	own := r.meter.Read()
	own.Mallocs = 0
	return own.Plus(u), err
}

// Close ends the process.
func (r *Remote) Close() (err error) {
	if r.control != nil {
		err = r.control.Close()
	}
	if r.child != nil {
		err = errors.Join(err, r.child.Stop())
	}
	return err
}
