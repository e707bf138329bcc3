package peer

import (
	"bufio"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// Over a control connection a client sends orders, each a line of JSON, and the server answers each with
// another line. An empty line requests what the server has used; the answer has the form of a Usage.

// A Control is the client's end of a control connection.
type Control struct {
	c   net.Conn
	in  *bufio.Reader
	out *json.Encoder
	buf [UsageLen]byte
}

// An answer is the line that answers an order.
type answer struct {
	Error  string `json:"error,omitempty"`
	Result any    `json:"result,omitempty"`
}

// DialControl connects to a child that runs ServeControl.
func DialControl(k *Child) (*Control, error) {
	c, err := Dial(k.Addr, "")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, k.secret); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Control{c: c, in: bufio.NewReader(c), out: json.NewEncoder(c)}, nil
}

// Do sends an order, and waits for the result; result is a pointer.
func (r *Control) Do(order, result any) error {
	if err := r.out.Encode(order); err != nil {
		return err
	}
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the server process: %w", cli.OfConnection(err))
	}
	a := answer{Result: result}
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New("server: " + a.Error)
	}
	return nil
}

var emptyLine = []byte{'\n'}

// Usage requests what the server has used.
func (r *Control) Usage() (u Usage, err error) {
	if _, err := r.c.Write(emptyLine); err != nil {
		return u, err
	}
	_, err = io.ReadFull(r.in, r.buf[:])
	return UsageOf(&r.buf), cli.OfConnection(err)
}

// Close ends the control connection.
func (r *Control) Close() error { return r.c.Close() }

// ServeControl announces where it listens, and carries out the orders of the parent process until the parent leaves. It must not obey
// other processes of the host, which can connect, too, even those of other users: orders name files, for example.
func ServeControl[Order, Result any](ctx context.Context, stdin io.Reader, stdout io.Writer, do func(context.Context, *Order) (Result, error)) error {
	in := bufio.NewReader(stdin)
	secret, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the parent process: %w", err)
	}
	ctx, cancel := Left(ctx, in)
	defer cancel()
	l, err := Listen("127.0.0.1", "")
	if err != nil {
		return err
	}
	Announce(stdout, l.Addr())
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	c, err := acceptParent(l, strings.TrimSuffix(secret, "\n"))
	stop()
	if err != nil {
		return err
	}
	_ = l.Close() // there is one client
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var meter Meter
	var buf [UsageLen]byte
	out := json.NewEncoder(c)
	for in := bufio.NewScanner(c); in.Scan(); {
		if len(in.Bytes()) == 0 {
			meter.Read().Put(&buf)
			if _, err := c.Write(buf[:]); err != nil {
				return err
			}
			continue
		}
		var a answer
		var o Order
		if err = json.Unmarshal(in.Bytes(), &o); err == nil {
			a.Result, err = do(ctx, &o)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// secretTime is how long the parent process may take to send the secret after it has connected.
const secretTime = time.Second

// acceptParent waits for the connection that begins with the secret, and closes all before it.
func acceptParent(l net.Listener, secret string) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		said := make([]byte, len(secret))
		_ = c.SetReadDeadline(time.Now().Add(secretTime)) // if it fails, the read does, too
		_, err = io.ReadFull(c, said)
		if err == nil && hmac.Equal(said, []byte(secret)) {
			return c, c.SetReadDeadline(time.Time{})
		}
		_ = c.Close()
	}
}
